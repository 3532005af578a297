// Ops by name, rows by device, and the plans made from both.
#include <set>
#include <thread>

#include "dispatch/recorder.hpp"

using namespace recorder;

namespace {
constexpr DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32, i64 = DType::i64;

OpSpec unary(const std::string& name, uint32_t flags = 0) {
  return {.name = name,
          .shape = "same",
          .dtype = "same",
          .params = {{.name = "x", .kind = ParamKind::value}},
          .flags = flags};
}
Row row(const std::string& op, const char* engine, DType t = f32) {
  return {op, {takes(t, kPlain)}, {takes(t, 0)}, computes(plus), {}, engine};
}
Plugin& device_with(const std::vector<Row>& rows, Options options = {}) {
  static auto& names = *new std::deque<std::string>;
  names.push_back("r" + std::to_string(names.size()));
  return plugin(names.back().c_str(), basic_rows() + rows, options);
}
}  // namespace

TEST(candidates_in_order) {
  OpSpec spec = unary("t.ordered");
  spec.flags = op_has_decomposition | op_half_in_f32;
  const Op& o = register_op(spec);
  Plugin& own = device_with({{"t.ordered", {takes(f32)}, {takes(f32, 0)}, computes(plus)}});
  const auto modes = [&](DType t) {
    static constexpr const char* words[] = {"kernel",        "view",    "set_slice", "identity",
                                            "decomposition", "via_f32", "host"};
    const Tensor x = array(own.device(), {2}, {}, t);
    std::string text;
    for (const Plan::Candidate& c : Call(o, {&x}).plan().candidates) text += std::string(words[c.mode]) + " ";
    return text;
  };
  CHECK_EQ(modes(f32), "kernel decomposition host ");
  CHECK_EQ(modes(DType::f16), "via_f32 decomposition host ");
  CHECK_EQ(modes(DType::i32), "decomposition host ");
  set_fallback(Fallback::error);
  CHECK_EQ(modes(f32), "kernel decomposition ");
  set_fallback(Fallback::warn);
}

TEST(what_register_op_refuses) {
  using K = ParamKind;
  const auto refused = [](auto change, const std::string& why) {
    OpSpec spec = unary("t.refused");
    change(spec);
    const size_t before = all_ops().size();
    CHECK_THROWS(Error, "[register_op] op '" + spec.name + "': " + why, register_op(spec));
    CHECK_EQ(all_ops().size(), before);
    CHECK(spec.name == "add" || !find_op(spec.name));
  };
  refused([](OpSpec& s) { s.name = ""; }, "has no name");
  refused([](OpSpec& s) { s.name = "add"; }, "is registered already: choose a name with your own prefix");
  refused([](OpSpec& s) { s.params[0].name = ""; }, "a parameter has no name");
  refused([](OpSpec& s) { s.params.push_back({"x", K::f64}); }, "two parameters are called 'x'");
  refused([](OpSpec& s) { s.params = {{.name = "xs", .kind = K::value, .variadic = true}, {"y", K::value}}; },
          "'y' follows a variadic operand, which must be the last");
  refused([](OpSpec& s) { s.params = {{.name = "xs", .kind = K::raw, .variadic = true}}; }, "'xs' is variadic");
  refused(
      [](OpSpec& s) {
        for (char c = 'a'; c < 'i'; ++c) s.params.push_back({std::string(1, c), K::value});
      },
      "more than 8 operands");
  refused(
      [](OpSpec& s) {
        for (char c = 'a'; c < 'j'; ++c) s.params.push_back({std::string(1, c), K::f64});
      },
      "more than 8 attributes");
  refused([](OpSpec& s) { s.n_out = 0; }, "1 to 4 outputs");
  refused([](OpSpec& s) { s.n_out = 5; }, "1 to 4 outputs");
  refused([](OpSpec& s) { s.shape = "smae"; }, "there is no shape rule 'smae': expected one of same, broadcast");
  refused([](OpSpec& s) { s.dtype = "any"; }, "there is no dtype rule 'any'");
  refused([](OpSpec& s) { s.flags = op_view; }, "there is no view 'same'");
  refused([](OpSpec& s) { s.flags = op_set_slice; }, "its traits: expected set_slice of an op with its shape rule");
  refused([](OpSpec& s) { s.flags = op_converts; }, "its traits: expected converts of an op with one operand");
  refused([](OpSpec& s) { s.flags = op_identity_on_ints, s.shape = "flip"; },
          "its traits: expected identity_on_ints");
  refused([](OpSpec& s) { s.flags = op_integer_exponent; },
          "its traits: expected integer_exponent of an op with two");
  refused([](OpSpec& s) { s.flags = op_autocast; }, "its traits: expected one autocast policy");
  refused([](OpSpec& s) { s.params.push_back({.name = "p", .kind = K::f64, .since = 2}); },
          "'p' is since version 2: expected at most");
  refused([](OpSpec& s) { s.version = 2, s.params.push_back({.name = "p", .kind = K::f64, .since = 2}); },
          "'p' is newer than the op: expected a default");
  refused([](OpSpec& s) { s.version = 2, s.params.push_back({.name = "p", .kind = K::value, .since = 2}); },
          "'p' is newer than the op: expected it to be optional");
  refused(
      [](OpSpec& s) {
        s.version = 2, s.params.push_back({.name = "p", .kind = K::raw, .optional = true, .since = 2});
        s.params.push_back({.name = "q", .kind = K::raw, .optional = true});
      },
      "'q' follows an operand of a newer version");
  const size_t before = all_ops().size();
  CHECK_EQ(size_t(register_op(unary("t.refused")).id), before);  // nothing is left of it
}

TEST(ops_by_name) {
  CHECK_THROWS(Error, "there is no op 'softmux', did you mean 'softmax'?", op("softmux"));
  CHECK_EQ(find_op("softmux"), static_cast<const Op*>(nullptr));
  CHECK_EQ(op("softmax").kernel_name, "dvt.softmax");
  const Op& own = register_op(unary("acme.named"));
  CHECK_EQ(own.kernel_name, "acme.named");
  CHECK_EQ(&op("acme.named"), &own);
  CHECK_EQ(all_ops().back(), &own);
}

TEST(rows_in_table_order_and_those_added_first) {
  const Op& o = register_op(unary("t.order"));
  Plugin& p =
      device_with({row("t.order", "one"), row("t.order", "doubles", f64), row("t.order", "two")}, {.devices = 2});
  Device &device = p.device(), &sibling = p.device(1);
  const Tensor x = array(device, {2}), y = array(device, {2}, {}, f64), z = array(sibling, {2});
  CHECK_EQ(Call(o, {&x}).plan().rows().size(), 2u);
  CHECK_EQ(Call(o, {&x}).engine(), "one");
  CHECK_EQ(Call(o, {&x}).inv.plan, static_cast<const Plan*>(nullptr));
  CHECK_EQ(Call(o, {&y}).engine(), "doubles");
  const Plan* before = &Call(o, {&x}).plan();
  CHECK(before->simple == false && Call(o, {&y}).plan().simple);

  add_kernel(device, make_row(row("t.order", "three")));
  add_kernel(device, make_row(row("t.order", "four")));
  add_kernel(device, make_row(row("t.unknown", "five")));  // for an op that may be registered later
  const Plan& plan = Call(o, {&x}).plan();
  CHECK(&plan != before);
  std::string engines;
  for (const auto& [mode, row] : plan.rows()) engines += std::string(row->engine) + " ";
  CHECK_EQ(engines, "four three one two ");
  CHECK_EQ(Call(o, {&z}).engine(), "one");
  CHECK_EQ(Call(o, {&y}).engine(), "doubles");
  seen.clear();
  Call(o, {&x}).run();
  CHECK_EQ(seen.at(0), "four: f32(2)/(1) -> f32(2)/(1)");
  CHECK_EQ(kernel_rows(device, "t.unknown").size(), 1u);
}

TEST(a_plan_per_dtypes_and_device) {
  Plugin& p = device_with({{"dvt.full", {}, {any(0, 0)}, fill_from_attribute}}, {.devices = 2});
  Device& device = p.device();
  const Tensor x = array(device, {2}), y = array(device, {2, 2}), k = array(device, {2}, {}, i32),
               z = array(p.device(1), {2});
  const Op &add = op("add"), &full = op("full"), &astype = op("astype");
  CHECK_EQ(&Call(add, {&x, &x}).plan(), &Call(add, {&y, &x}).plan());
  CHECK(&Call(add, {&x, &x}).plan() != &Call(add, {&x, &k}).plan());
  CHECK(&Call(add, {&k, &x}).plan() != &Call(add, {&x, &k}).plan());
  CHECK(&Call(add, {&x, &x}).plan() != &Call(add, {&z, &z}).plan());
  CHECK(Call(add, {&k, &x}).plan().compute[0] == f32);
  CHECK(&Call(astype, {&x}, {{"dtype", i32}}).plan() != &Call(astype, {&x}, {{"dtype", f64}}).plan());
  // A scalar attribute decides the dtype if nothing else does.
  const auto filled = [&](Value v, Value dtype) -> const Plan& {
    return Call(full, {}, {{"shape", Ints{2}}, {"fill_value", v}, {"dtype", dtype}}, &device).plan();
  };
  CHECK(filled(1, nullptr).result[0] == i64 && filled(1., nullptr).result[0] == f32 &&
        filled(true, nullptr).result[0] == DType::b8);
  CHECK(filled(1, f64).result[0] == f64);
  CHECK_EQ(&filled(1, nullptr), &filled(2, nullptr));
  const Plan& plan = filled(1, nullptr);
  forget_plans();
  CHECK(&filled(1, nullptr) != &plan);
  CHECK_THROWS(Error, "[full] expected at least one array",
               Call(full, {}, {{"shape", Ints{2}}, {"fill_value", 1}}).plan());
  CHECK_THROWS(Error, "expected one device; bring one over with .to_device()", Call(add, {&x, &z}).plan());
}

TEST(more_plans_than_a_table_holds) {
  OpSpec spec = unary("t.many");
  spec.params.push_back({"a", ParamKind::raw});
  spec.params.push_back({"b", ParamKind::raw});
  const Op& o = register_op(spec);
  Device& device =
      device_with({{"t.many", {takes(f32), any(0), any(0)}, {takes(f32, 0)}, computes(plus)}}).device();
  std::vector<Tensor> of;
  for (int t = 0; t < kDTypes; ++t) {
    if (is_packed(DType(t))) continue;  // a row for any dtype does not take them
    of.push_back(Tensor());
    of.back().set_type(DType(t), &device);
    of.back().set_shape({});
  }
  std::atomic<int> wrong{0};
  const auto look_up = [&](int from) {
    for (size_t n = 0; n < 2 * of.size() * of.size(); ++n) {
      const size_t at = (size_t(from) + n) % (of.size() * of.size());
      const Tensor &a = of[at / of.size()], &b = of[at % of.size()];
      const Plan& p = Call(o, {&of[int(f32)], &a, &b}).plan();
      wrong += p.compute[1] != a.dtype || p.compute[2] != b.dtype || p.rows().size() != 1;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(look_up, 50 * i);
  for (std::thread& t : threads) t.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(any_types) {
  const Op& o = register_op(unary("t.any"));
  const auto named = [](const char* name, dvt_operand in, dvt_operand out) {
    return Row{"t.any", {in}, {out}, copy_elements, {}, name};
  };
  Device& device = device_with({named("float", takes(f32), takes(f32, 0)), named("32", any(32), any(32, 0)),
                                named("64", any(64), any(64, 0)), named("rest", any(0), any(0, 0))})
                       .device();
  const auto rows = [&](DType t) {
    const Tensor x = array(device, {1}, {}, t);
    std::string names;
    for (const auto& [mode, row] : Call(o, {&x}).plan().rows()) names += std::string(row->engine) + " ";
    return names;
  };
  CHECK_EQ(rows(f32), "float 32 rest ");
  CHECK_EQ(rows(i32), "32 rest ");
  CHECK_EQ(rows(DType::u64), "64 rest ");
  CHECK_EQ(rows(DType::i8), "rest ");
}

TEST(optional_operands) {
  OpSpec spec = unary("t.optional");
  spec.params.push_back(
      {.name = "bias", .kind = ParamKind::value, .optional = true, .fallback = {AttrDefault::none}});
  const Op& o = register_op(spec);
  const auto named = [](const char* name, int flags, double by) {
    return Row{"t.optional",
               {takes(f32), takes(f32, flags)},
               {takes(f32, 0)},
               computes([by](const Doubles& x) { return x[0] + by * x[1]; }),
               {},
               name};
  };
  Device& device =
      device_with({named("both", DVT_O_STRIDED, 1), named("either", DVT_O_STRIDED | DVT_O_OPTIONAL, 10)}).device();
  const Tensor x = array(device, {2}), y = array(device, {2}, {3, 3});
  CHECK_EQ(values(Call(o, {&x, &y}).run()), "3 4");
  CHECK_EQ(values(Call(o, {&x, nullptr}).run()), "0 1");
  CHECK_EQ(seen.back(), "either: f32(2)/(1), - -> f32(2)/(1)");
  Device& strict = device_with({named("both", DVT_O_STRIDED, 1)}).device();
  const Tensor z = array(strict, {2});
  CHECK_THROWS(Error, "[t.optional] float32 is not supported on", Call(o, {&z, nullptr}).run());
}

// ---- query ------------------------------------------------------------------------------------------------------

namespace {
struct Asked {  // the result of the next query
  dvt_status status = DVT_OK;
  uint64_t workspace = 0, need_compact = 0;
  const char* reason = nullptr;
  std::string saw{};
  int times = 0;
} asked[2];

// Two rows, and one that needs no query.
Device& asking(const std::string& name, bool plain, std::vector<uint64_t>* workspaces) {
  const auto made = [=](int i) {
    Row r = row(name, i ? "second" : "first");
    r.in[0].flags = DVT_O_STRIDED | DVT_O_HOST_SCALAR;
    r.query = [i](const dvt_call& c, dvt_answer& a) {
      Asked& now = asked[i];
      now.saw += describe(c.in[0]) + " ";
      const bool copied = now.need_compact && ++now.times == 2;
      DVT_PUT(&a, dvt_answer, workspace, copied ? 2 * now.workspace : now.workspace);
      DVT_PUT(&a, dvt_answer, need_compact, now.need_compact);
      DVT_PUT(&a, dvt_answer, reason, now.reason);
      if (now.status == DVT_INTERNAL) return Plugin::opening->fail(DVT_INTERNAL, "no luck");
      return copied ? DVT_OK : now.status;
    };
    r.run = [workspaces](const dvt_call& c) {
      workspaces->push_back(c.workspace_size);
      CHECK_EQ(reinterpret_cast<uintptr_t>(c.workspace) % 64, 0u);
      if (c.workspace) std::memset(c.workspace, 0xAB, c.workspace_size);
      return copy_elements(c);
    };
    return r;
  };
  std::vector<Row> rows{made(0), made(1)};
  if (plain) rows.push_back(row(name, "plain"));
  return device_with(rows).device();
}
}  // namespace

TEST(queries_choose_the_row) {
  const Op& o = register_op(unary("t.query"));
  std::vector<uint64_t> workspaces;
  Device& device = asking("t.query", true, &workspaces);
  const Tensor x = array(device, {2, 3}), t = permute(x, {1, 0});
  const uint64_t held = in_use(device);
  const auto ran = [&](const Tensor& x, Asked first, Asked second) {
    asked[0] = first, asked[1] = second;
    seen.clear();
    const std::string result = values(Call(o, {&x}).run());
    CHECK_EQ(result, &x == &t ? "0 3 1 4 2 5" : "0 1 2 3 4 5");
    CHECK_EQ(in_use(device), held);
    return seen.back();
  };
  const std::string flat = "f32(6)/(1) -> f32(6)/(1)", strided = "f32(3, 2)/(1, 3) -> f32(3, 2)/(2, 1)";
  CHECK_EQ(ran(x, {.workspace = 1000}, {}), "first: " + flat);
  CHECK_EQ(workspaces.back(), 1000u);
  CHECK_EQ(asked[0].saw + asked[1].saw, "f32(6)/(1) ");  // as run gets it; the second was not queried
  CHECK_EQ(ran(x, {.status = DVT_UNSUPPORTED, .workspace = 1000}, {}), "second: " + flat);
  CHECK_EQ(workspaces.back(), 0u);
  CHECK_EQ(ran(t, {.status = DVT_UNSUPPORTED, .need_compact = 1}, {.status = DVT_UNSUPPORTED, .workspace = 50}),
           "plain: " + strided);

  asked[0] = {.status = DVT_INTERNAL};
  CHECK_THROWS(Error, "[t.query] no luck", Call(o, {&x}).run());
  CHECK_EQ(in_use(device), held);
}

TEST(rows_that_need_compact_operands) {
  const Op& o = register_op(unary("t.compact"));
  std::vector<uint64_t> workspaces;
  Device& device = asking("t.compact", false, &workspaces);
  const Tensor x = array(device, {2, 3}), t = permute(x, {1, 0});
  asked[0] = {.status = DVT_UNSUPPORTED, .workspace = 1000, .need_compact = 1};
  asked[1] = {.status = DVT_UNSUPPORTED, .workspace = 7};
  seen.clear();
  CHECK_EQ(values(Call(o, {&t}).run()), "0 3 1 4 2 5");
  CHECK_EQ(seen.at(0), "copy: f32(3, 2)/(1, 3) -> f32(3, 2)/(2, 1)");
  CHECK_EQ(seen.at(1), "first: f32(6)/(1) -> f32(6)/(1)");
  CHECK_EQ(workspaces.back(), 2000u);  // of the copy, by the row that runs
  CHECK_EQ(asked[0].saw, "f32(3, 2)/(1, 3) f32(6)/(1) ");
  // Host scalars and compact operands are not copied.
  asked[0] = {.status = DVT_UNSUPPORTED, .need_compact = ~uint64_t{0}};
  seen.clear();
  const Tensor three = number(3);
  CHECK_EQ(values(Call(o, {&three}, {}, &device).run()), "3");
  CHECK_EQ(seen.at(0), "first: host f32()/() -> f32(1)/(1)");
  CHECK_EQ(seen.size(), 1u);

  asked[0] = {.status = DVT_UNSUPPORTED, .reason = "the moon is full"}, asked[1] = {.status = DVT_UNSUPPORTED};
  CHECK_THROWS(Error, "[t.compact] not supported on " + device.name + ": the moon is full", Call(o, {&x}).run());
  const Op& broken = register_op(unary("t.broken"));
  Row r = row("t.broken", "broken");
  r.query = [](const dvt_call&, dvt_answer& a) { return a.need_compact = 1, DVT_UNSUPPORTED; };
  add_kernel(device, make_row(r));
  CHECK_THROWS(Error, "[t.broken] not supported on", Call(broken, {&t}).run());
}

TEST(queries_see_what_run_would_get) {
  OpSpec spec = unary("t.sees");
  spec.shape = "broadcast", spec.dtype = "promote", spec.params.push_back({"y", ParamKind::value});
  const Op& o = register_op(spec);
  static std::string asked_for;
  Row r{"t.sees",
        {takes(f32, 0), takes(f32, 0)},
        {takes(f32, 0)},
        computes(plus),
        [](const dvt_call& c, dvt_answer&) {
          asked_for = describe(c.in[0]) + ", " + describe(c.in[1]);
          return DVT_OK;
        }};
  Device& device = device_with({r}).device();
  const Tensor x = array(device, {2, 3}), column = array(device, {2, 1}),
               t = permute(array(device, {3, 2}), {1, 0}), one = number(1);
  CHECK_EQ(values(Call(o, {&t, &column}).run()), "0 2 4 2 4 6");
  CHECK_EQ(asked_for, "f32(6)/(1), f32(6)/(1)");
  CHECK_EQ(seen.back(), "sees: f32(6)/(1), f32(6)/(1) -> f32(6)/(1)");
  CHECK_EQ(values(Call(o, {&x, &one}).run()), "1 2 3 4 5 6");
  CHECK_EQ(asked_for, "f32(6)/(1), f32(6)/(1)");
}

// ---- versions ---------------------------------------------------------------------------------------------------

TEST(rows_older_than_the_op) {
  using K = ParamKind;
  OpSpec spec{.name = "t.versions", .version = 3, .shape = "along_axis", .dtype = "same"};
  spec.params = {
      {"x", K::value},
      {.name = "axis", .kind = K::i64, .fallback = {AttrDefault::i64, -1}, .since = 2},
      {.name = "mode", .kind = K::str, .fallback = {.kind = AttrDefault::str, .s = "fast"}, .since = 2},
      {.name = "pads", .kind = K::i64s, .fallback = {.kind = AttrDefault::i64s, .is = {1, 2}}, .since = 2},
      {.name = "scale", .kind = K::f64, .fallback = {.kind = AttrDefault::f64, .f = 1.5}, .since = 3}};
  const Op& o = register_op(spec);
  const auto of = [](const char* name, uint32_t version) {
    Row r = row("t.versions", name);
    r.version = version;
    return r;
  };
  Device& device = device_with({of("future", 4), of("v1", 1), of("v2", 2)}).device();
  const Tensor x = array(device, {2, 3});
  const auto ran = [&](const Settings& settings) {
    Call(o, {&x}, settings).run();
    return seen.back().substr(0, 2);
  };
  CHECK_EQ(ran({}), "v1");
  CHECK_EQ(ran({{"axis", 1}, {"mode", std::string("fast")}, {"pads", Ints{1, 2}}, {"scale", 1.5}}), "v1");
  CHECK_EQ(ran({{"axis", 0}}), "v2");
  CHECK_EQ(ran({{"mode", std::string("slow")}}), "v2");
  CHECK_EQ(ran({{"pads", Ints{1, 3}}}), "v2");
  const std::string why =
      "[t.versions] not supported on " + device.name + ": no row of its table serves these attributes";
  CHECK_THROWS(Error, why, ran({{"scale", 2.}}));
  Device& only_old = device_with({of("v1", 1)}).device();
  const Tensor y = array(only_old, {2});
  CHECK_EQ(values(Call(o, {&y}).run()), "0 1");
  CHECK_THROWS(Error, "[t.versions] not supported on", Call(o, {&y}, {{"mode", std::string("slow")}}).run());
}

TEST(rows_older_than_an_operand) {
  using K = ParamKind;
  OpSpec spec{.name = "t.grown", .version = 2, .shape = "broadcast", .dtype = "promote"};
  spec.params = {{"x", K::value}, {.name = "y", .kind = K::value, .optional = true, .since = 2}};
  const Op& o = register_op(spec);
  Device& device = device_with({row("t.grown", "old")}).device();
  const Tensor x = array(device, {2});
  CHECK_EQ(values(Call(o, {&x, nullptr}).run()), "0 1");
  CHECK_EQ(seen.back(), "old: f32(2)/(1) -> f32(2)/(1)");  // one operand, not an absent second one
  CHECK_THROWS(Error, "[t.grown] float32, float32 is not supported on", Call(o, {&x, &x}).run());

  Row both{"t.grown", {takes(f32), takes(f32, DVT_O_OPTIONAL)}, {takes(f32, 0)}, computes(plus)};
  both.version = 2;
  Device& newer = device_with({both, row("t.grown", "old")}).device();
  const Tensor y = array(newer, {2});
  CHECK_EQ(values(Call(o, {&y, &y}).run()), "0 2");
  CHECK_EQ(values(Call(o, {&y, nullptr}).run()), "0 1");
  both.version = 1;  // a row of version 1 has one operand
  Device& wrong = device_with({both}).device();
  const Tensor z = array(wrong, {2});
  CHECK_THROWS(Error, "is not supported on", Call(o, {&z, &z}).run());
}

TEST(a_row_that_ends_before_query) {
  const Op& o = register_op(unary("t.short"));
  Device& device = device_with({}).device();
  dvt_kernel* k = make_row(row("t.short", "short"));
  k->struct_size = offsetof(dvt_kernel, query);
  k->query = [](dvt_device*, const dvt_call*, dvt_answer*) -> dvt_status { std::abort(); };  // the bytes after it
  add_kernel(device, k);
  const Tensor x = array(device, {2});
  CHECK_EQ(values(Call(o, {&x}).run()), "0 1");
}

TEST(rows_that_no_device_can_serve) {
  const Op& o = register_op(unary("t.wants"));
  Device& device = device_with({}).device();
  const Tensor x = array(device, {2});
  add_kernel(device, make_row({"t.wants", {takes(f32, DVT_O_STRIDED, 7)}, {takes(f32, 0)}, computes(plus)}));
  CHECK_THROWS(Error, "wants operands aligned to 128 bytes: expected at most alloc_align, 64", Call(o, {&x}).run());
  add_kernel(device, make_row({"dvt.copy", {any(32, 0)}, {any(32, 0)}, copy_elements}));
  CHECK_THROWS(Error, "[copy] " + device.name + "'s kernel does not take strided operands", run("copy", {&x}));
  add_kernel(device, make_row({"dvt.copy", {takes(f64, DVT_O_STRIDED, 4)}, {takes(f64, 0)}, copy_elements}));
  const Tensor y = array(device, {2}, {}, f64);
  CHECK_THROWS(Error, "wants an aligned operand", run("copy", {&y}));
}

// ---- operands and outputs beyond the usual ----------------------------------------------------------------------

TEST(variadic_ops) {
  const auto join = [](const dvt_call& c) {
    char* to = static_cast<char*>(c.out[0]->data);
    for (uint32_t i = 0; i < c.n_in; ++i) {
      const size_t bytes = size_t(count(*c.in[i])) * 4;
      std::memcpy(to, c.in[i]->data, bytes), to += bytes;
    }
    return DVT_OK;
  };
  OpSpec spec{.name = "t.join", .shape = "concat", .dtype = "promote"};
  spec.params = {{.name = "xs", .kind = ParamKind::value, .variadic = true},
                 {.name = "axis", .kind = ParamKind::i64, .fallback = {AttrDefault::i64, 0}}};
  const Op& o = register_op(spec);
  Device& device = device_with({{"t.join", {takes(f32, 0)}, {takes(f32, 0)}, join, {}, "one"},
                                {"t.join", {takes(f32, DVT_O_VARIADIC)}, {takes(f32, 0)}, join, {}, "many"}})
                       .device();
  const Tensor x = array(device, {3, 1}), t = slice(array(device, {3, 2}), {0, 1}, {3, 2}, {1, 1}),
               k = array(device, {1, 1}, {9}, i32);
  seen.clear();
  CHECK_EQ(values(Call(o, {&x, &t, &k}).run()), "0 1 2 1 3 5 9");
  CHECK_EQ(seen.back(), "many: f32(3, 1)/(1, 1), f32(3, 1)/(1, 1), f32(1, 1)/(1, 1) -> f32(7, 1)/(1, 1)");
  CHECK_EQ(seen.size(), 3u);  // a cast, a copy, the kernel
  const Tensor nine = array(device, {1, 1}, {9});
  CHECK_EQ(values(Call(o, std::vector<const Tensor*>(8, &nine)).run()), "9 9 9 9 9 9 9 9");
  CHECK_THROWS(Error, "[t.join] float32 is not supported", [&] {
    const Tensor there = array(device_with({}).device(), {3, 1});
    Call(o, {&there, &there}).plan();
  }());
  CHECK_THROWS(Error, "more than 8 arrays: expected fewer", Call(o, std::vector<const Tensor*>(9, &x)).run());
  CHECK_THROWS(Error, "no arrays: expected at least one", Call(o, {}, {}, &device).run());
}

TEST(operands_before_a_variadic_one) {
  OpSpec spec{.name = "t.lead", .shape = "broadcast", .dtype = "promote"};
  spec.params = {{"k", ParamKind::raw}, {.name = "xs", .kind = ParamKind::value, .variadic = true}};
  const Op& o = register_op(spec);
  Device& device = device_with({{"t.lead",
                                 {any(0), takes(f32, DVT_O_STRIDED | DVT_O_VARIADIC)},
                                 {takes(f32, 0)},
                                 computes([](const Doubles& x) { return x[0] * 100 + x[1] + x[2]; })}})
                       .device();
  const Tensor x = array(device, {2}), k = array(device, {2}, {1, 2}, i32), d = array(device, {2}, {.5, .25}, f64);
  CHECK_EQ(values(Call(o, {&k, &x, &x}).run()), "100 202");
  CHECK_EQ(seen.back(), "lead: i32(2)/(1), f32(2)/(1), f32(2)/(1) -> f32(2)/(1)");
  CHECK_EQ(values(Call(o, {&d, &x, &x}).run()), "50 27");
  CHECK_EQ(seen.back(), "lead: f64(2)/(1), f32(2)/(1), f32(2)/(1) -> f32(2)/(1)");
}

TEST(several_outputs) {
  OpSpec spec = unary("t.two");
  spec.n_out = 2;
  const Op& o = register_op(spec);
  Device& device = device_with({{"t.two", {takes(f32)}, {takes(f32, 0), takes(f32, 0)}, computes(plus)}}).device();
  const Tensor x = permute(array(device, {2, 2}), {1, 0}), empty = array(device, {0, 3});
  Call call(o, {&x});
  CHECK_EQ(values(call.run()), "0 2 1 3");
  CHECK_EQ(values(call.out[1]), "1 3 2 4");
  CHECK_EQ(seen.back(), "two: f32(2, 2)/(1, 2) -> f32(2, 2)/(2, 1), f32(2, 2)/(2, 1)");
  Call nothing(o, {&empty});
  nothing.run();
  CHECK_EQ(to_string(nothing.out[1].shape()), "(0, 3)");
}

CHECK_MAIN
