// Engines that the caller selects among the rows of an op.
#include "dispatch/engines.hpp"

#include <thread>

#include "dispatch/recorder.hpp"
#include "graph/program.hpp"

using namespace recorder;

namespace {
constexpr DType f32 = DType::f32, f64 = DType::f64;
using Names = std::vector<std::string>;

// Decompositions: x + x, and t.attend of x.
std::vector<int> trace(const Invocation& inv, const std::shared_ptr<ProgramBuilder>& b,
                       const std::vector<int>& in) {
  const int x = in[0];
  const bool calls_attention = inv.op.spec.name == "t.layer";
  const Op& called = op(calls_attention ? "t.attend" : "add");
  return {b->call(called, calls_attention ? std::vector{x} : std::vector{x, x}, called.defaults)};
}
OpSpec unary(const std::string& name, uint32_t flags) {
  return {.name = name,
          .shape = "same",
          .dtype = "same",
          .params = {{.name = "x", .kind = ParamKind::value}},
          .flags = flags};
}
const Op& attend() {
  static const Op& o = register_op(unary("t.attend", op_has_decomposition));
  decomposition_tracer = trace;
  return o;
}
const Op& layer() {
  static const Op& o = register_op(unary("t.layer", op_has_decomposition));
  return o;
}
const Op& bare() {
  static const Op& o = register_op(unary("t.bare", 0));
  return o;
}

struct Answers {  // of a row
  const char* reason = nullptr;
  uint64_t need_compact = 0;
};
Answers cudnn, flash;

Row row(const std::string& op, const char* engine, Answers* answers, DType t = f32) {
  Row r{op, {takes(t, kPlain)}, {takes(t, 0)}, computes(plus), {}, engine};
  if (answers)
    r.query = [answers](const dvt_call&, dvt_answer& a) {
      a.reason = answers->reason, a.need_compact = answers->need_compact;
      return a.reason ? DVT_UNSUPPORTED : DVT_OK;
    };
  return r;
}
Device& device() {
  static Device& d = plugin("engines", basic_rows() + std::vector<Row>{row("t.attend", "cudnn", &cudnn),
                                                                       row("t.attend", "flash", &flash),
                                                                       row("t.attend", nullptr, nullptr),
                                                                       row("t.attend", "wide", nullptr, f64),
                                                                       row("t.bare", "flash", nullptr)})
                         .device();
  cudnn = flash = {};
  return d;
}
// One row, without query: served without checking others if no engine is selected.
Device& simple() {
  static Device& d = plugin("simple", basic_rows() + std::vector<Row>{row("t.attend", "flash", nullptr)}).device();
  return d;
}
Device& without_rows() {
  static Device& d = plugin("norows", basic_rows()).device();
  return d;
}

std::string by(const Op& o, const Tensor& x) {  // the row that ran last
  seen.clear();
  Call(o, {&x}).run();
  return seen.empty() ? "" : seen.back().substr(0, seen.back().find(':'));
}
std::string by(const Op& o, const Tensor& x, const Names& engines) {
  const EngineChoice choice({&attend()}, engines);
  const EngineScope scope(&choice);
  return by(o, x);
}
}  // namespace

TEST(the_table_decides_where_nothing_is_chosen) {
  const Tensor x = array(device(), {3}), y = array(simple(), {3}), z = array(without_rows(), {3});
  CHECK_EQ(by(attend(), x), "cudnn");
  cudnn.reason = "the moon is full";
  CHECK_EQ(by(attend(), x), "flash");
  flash.reason = "it rains";
  CHECK_EQ(by(attend(), x), "attend");  // a row without a name
  CHECK_EQ(by(attend(), y), "flash");
  CHECK_EQ(by(attend(), z), "add");  // the decomposition
}

TEST(a_chosen_engine_serves) {
  const Tensor x = array(device(), {3}), y = array(simple(), {3}), z = array(without_rows(), {3});
  CHECK_EQ(by(attend(), x, {"flash"}), "flash");
  CHECK_EQ(by(attend(), x, {"own"}), "attend");
  CHECK_EQ(by(attend(), x, {"math"}), "add");
  CHECK_EQ(by(attend(), x), "cudnn");
  CHECK_EQ(by(attend(), y), "flash");  // makes the plan, which must not depend on the choice
  CHECK_EQ(by(attend(), y, {"math"}), "add");
  CHECK_EQ(by(attend(), y), "flash");
  CHECK_EQ(by(attend(), z, {"math"}), "add");
}

TEST(the_first_that_accepts) {
  const Tensor x = array(device(), {3});
  CHECK_EQ(by(attend(), x, {"flash", "cudnn"}), "flash");
  flash.reason = "it rains";
  CHECK_EQ(by(attend(), x, {"flash", "cudnn"}), "cudnn");
  cudnn.reason = "the moon is full";
  CHECK_EQ(by(attend(), x, {"flash", "math", "own"}), "add");
  CHECK_EQ(by(attend(), x, {"wide", "own"}), "attend");
}

TEST(a_chosen_engine_gets_its_copies) {
  const Tensor x = permute(array(device(), {2, 3}), {1, 0});
  static uint64_t asked;
  asked = 0;
  Row r = row("t.attend", "rows", nullptr);
  r.query = [](const dvt_call& c, dvt_answer& a) {
    ++asked;
    return row_major(*c.in[0]) ? DVT_OK : (a.need_compact = 1, DVT_UNSUPPORTED);
  };
  Device& d = plugin("copies", basic_rows() + std::vector<Row>{row("t.attend", "first", nullptr), r}).device();
  const Tensor t = permute(array(d, {2, 3}), {1, 0});
  CHECK_EQ(by(attend(), t, {"rows"}), "rows");
  CHECK_EQ(seen.at(0), "copy: f32(3, 2)/(1, 3) -> f32(3, 2)/(2, 1)");
  CHECK_EQ(asked, 2u);
}

TEST(an_error_names_why_no_engine_accepts) {
  const Tensor x = array(device(), {3}), z = array(without_rows(), {3});
  cudnn.reason = "the moon is full", flash.reason = "it rains";
  CHECK_THROWS(
      Error, "[t.attend] no chosen engine serves this call on engines:0: cudnn: the moon is full; flash: it rains",
      by(attend(), x, {"cudnn", "flash"}));
  CHECK_THROWS(Error, "wide: no kernel of it takes float32", by(attend(), x, {"wide"}));
  CHECK_THROWS(Error,
               "flash: this device has no engine 'flash': it has math; own: this device has no engine 'own': it "
               "has math",
               by(attend(), z, {"flash", "own"}));
  try {
    by(attend(), x, {"flash"});
  } catch (const Error& e) {
    CHECK(e.kind == ErrorKind::not_implemented);
  }
  CHECK_EQ(seen.size(), 0u);  // nothing ran instead
  CHECK_EQ(by(attend(), x), "attend");
}

TEST(a_choice_covers_its_ops_alone) {
  const Tensor x = array(device(), {3});
  CHECK_EQ(by(bare(), x, {"math"}), "flash");
  const EngineChoice of_bare({&bare(), &attend()}, {"math"});
  const EngineScope scope(&of_bare);
  CHECK_THROWS(Error, "math: the op has no decomposition", by(bare(), x));
}

TEST(calls_inside_decompositions) {
  const Tensor x = array(device(), {3});
  CHECK_EQ(by(layer(), x), "cudnn");  // traced now, and replayed under every choice
  CHECK_EQ(by(layer(), x, {"flash"}), "flash");
  CHECK_EQ(by(layer(), x, {"math"}), "add");
  CHECK_EQ(by(layer(), x), "cudnn");
  flash.reason = "it rains";
  CHECK_THROWS(Error, "[t.attend] no chosen engine serves this call on engines:0: flash: it rains",
               by(layer(), x, {"flash"}));
}

TEST(scopes_nest_and_belong_to_their_thread) {
  const Tensor x = array(device(), {3});
  const EngineChoice outer({&attend()}, {"flash"}), inner({&attend()}, {"own"});
  const EngineScope one(&outer);
  {
    const EngineScope two(&inner);
    CHECK_EQ(by(attend(), x), "attend");
  }
  CHECK_EQ(by(attend(), x), "flash");
  std::thread([&] { CHECK_EQ(by(attend(), x), "cudnn"); }).join();
}

TEST(unknown_engines) {
  device();
  CHECK_THROWS(Error, "no device has an engine 'flahs', did you mean 'flash'?",
               EngineChoice({&attend()}, {"flahs"}));
  CHECK_THROWS(Error, "no device has an engine 'mth', did you mean 'math'?",
               EngineChoice({&attend()}, {"own", "mth"}));
  CHECK_THROWS(Error, "no device has an engine 'quantum'; known: cudnn, flash, own, wide, math",
               EngineChoice({&attend()}, {"quantum"}));
  CHECK_THROWS(Error, "no device has an engine 'math'; known: flash", EngineChoice({&bare()}, {"math"}));
}

TEST(engines_of_a_device_and_of_a_call) {
  const Tensor x = array(device(), {3}), y = array(device(), {3}, {}, f64), z = array(without_rows(), {3});
  const auto shown = [](const Names& names) {
    std::string text;
    for (const std::string& name : names) text += name + " ";
    return text;
  };
  CHECK_EQ(shown(engines_for(attend(), device())), "cudnn flash own wide math ");
  CHECK_EQ(shown(engines_for(bare(), device())), "flash ");
  const auto serving = [&](const Tensor& t) {
    Call c(attend(), {&t});
    c.inv.infer();
    return shown(serving_engines(c.inv));
  };
  CHECK_EQ(serving(x), "cudnn flash own math ");
  CHECK_EQ(serving(y), "wide math ");
  CHECK_EQ(serving(z), "math ");
  cudnn = {.reason = "strides", .need_compact = 1}, flash.reason = "it rains";
  CHECK_EQ(serving(x), "own cudnn math ");  // a copy comes last
}

CHECK_MAIN
