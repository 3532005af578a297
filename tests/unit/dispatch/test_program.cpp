// Decompositions: traced by a function of the test, replayed by the core.
#include <set>

#include "dispatch/recorder.hpp"
#include "graph/program.hpp"

using namespace recorder;

namespace {
constexpr DType f32 = DType::f32, i32 = DType::i32, f16 = DType::f16;

// A decomposition: from the values of its operands (-1: absent) to those of its outputs.
struct Tracing {
  ProgramBuilder& b;
  const Invocation& inv;
  std::vector<int> in;

  int call(const std::string& name, const std::vector<int>& operands, const Settings& settings = {}) {
    const Op& o = op(name);
    Attrs attrs = attributes(o, settings);
    const int value = b.call(o, operands, attrs);
    std::fill_n(attrs.ints, attrs.n_ints, -99);  // a program has its own
    return value;
  }
  int number(double v, DType t = f32) { return b.constant(scalar_of(recorder::number(v, t))); }
};
using Body = std::function<std::vector<int>(Tracing&)>;
std::map<std::string, Body> decompositions;
std::map<std::string, int> traced;

std::set<std::string> for_any_sizes;  // the others look at sizes and attributes

std::vector<int> trace(const Invocation& inv, const std::shared_ptr<ProgramBuilder>& b,
                       const std::vector<int>& in) {
  ++traced[inv.op.spec.name];
  if (!for_any_sizes.count(inv.op.spec.name)) b->fix(inv.attrs, inv.op.n_attr);
  Tracing t{*b, inv, in};
  return decompositions.at(inv.op.spec.name)(t);
}

double fail_at = 1e9;  // t.fuse fails on this value
Device& device() {
  static const Row fuse{
      "dvt.multiply", {takes(f32, kPlain), takes(f32, kPlain)}, {takes(f32, 0)}, [](const dvt_call& c) {
        for (int64_t i = 0; i < count(*c.out[0]); ++i)
          if (get(f32, address(*c.in[0], i)) == fail_at)
            return Plugin::opening->fail(DVT_INTERNAL, "a fuse has blown");
        return computes(times)(c);
      }};
  static Device& d =
      plugin(
          "decompositions",
          basic_rows() + std::vector<Row>{fuse,
                                          {"dvt.full", {}, {any(0, 0)}, fill_from_attribute},
                                          {"dvt.add", {takes(i32), takes(i32)}, {takes(i32, 0)}, computes(plus)}})
          .device();
  decomposition_tracer = trace;
  return d;
}
Tensor iota(const Ints& shape, DType t = f32) { return array(device(), shape, {}, t); }

const Op& composite(const std::string& name, Body decomposition, int n_in = 2, OpSpec spec = {}) {
  spec.name = name, spec.flags |= op_has_decomposition;
  if (spec.shape.empty()) spec.shape = "broadcast", spec.dtype = "promote";
  std::vector<ParamSpec> params;
  for (int i = 0; i < n_in; ++i) params.push_back({"x" + std::to_string(i + 1), ParamKind::value});
  spec.params.insert(spec.params.begin(), params.begin(), params.end());
  decompositions[name] = std::move(decomposition);
  device();
  return register_op(std::move(spec));
}
}  // namespace

TEST(without_a_tracer) {
  const Op& o = composite("b.untraced", [](Tracing& t) { return t.in; }, 1);
  const Tensor x = iota({2});
  decomposition_tracer = nullptr;
  CHECK_THROWS(Error, "[b.untraced] has no kernel, and this library brings no decomposition for f32.1",
               Call(o, {&x}).run());
  decomposition_tracer = trace;
  CHECK_EQ(values(Call(o, {&x}).run()), "0 1");
}

TEST(a_decomposition_is_replayed) {
  const Op& o = composite("b.fma", [](Tracing& t) -> std::vector<int> {
    return {t.call("add", {t.call("multiply", {t.in[0], t.in[1]}), t.number(0.5)})};
  });
  const Tensor x = iota({2, 3}), row = iota({3}), t = permute(iota({3, 2}), {1, 0}), two = number(2);
  CHECK_EQ(values(Call(o, {&x, &row}).run()), "0.5 1.5 4.5 0.5 4.5 10.5");
  CHECK_EQ(values(Call(o, {&x, &row}).run()), "0.5 1.5 4.5 0.5 4.5 10.5");
  CHECK_EQ(traced["b.fma"], 1);
  CHECK_EQ(seen.back(), "add: f32(6)/(1), host f32()/() -> f32(6)/(1)");
  CHECK_EQ(values(Call(o, {&t, &row}).run()), "0.5 2.5 8.5 0.5 3.5 10.5");  // strides do not matter
  CHECK_EQ(traced["b.fma"], 1);
  CHECK_EQ(values(Call(o, {&x, &two}).run()), "0.5 2.5 4.5 6.5 8.5 10.5");  // nor does an operand's address
  CHECK_EQ(values(Call(o, {&two, &two}, {}, &device()).run()), "4.5");
}

TEST(programs_by_signature) {
  using K = ParamKind;
  OpSpec spec{.shape = "same", .dtype = "promote"};
  spec.params = {{.name = "y", .kind = K::value, .optional = true, .fallback = {AttrDefault::none}},
                 {.name = "mode", .kind = K::str, .fallback = {.kind = AttrDefault::str, .s = "a"}},
                 {.name = "ints", .kind = K::i64s, .fallback = {.kind = AttrDefault::i64s, .is = {1}}},
                 {.name = "f", .kind = K::f64, .fallback = {.kind = AttrDefault::f64, .f = 1}},
                 {.name = "kind", .kind = K::dtype, .fallback = {AttrDefault::none}},
                 {.name = "z", .kind = K::scalar, .fallback = {AttrDefault::i64, 0}}};
  const Op& o = composite(
      "b.keys", [](Tracing& t) -> std::vector<int> { return {t.call("add", {t.in[0], t.in[0]})}; }, 1, spec);
  const auto traces = [&](const Tensor& x, const Tensor* y, const Settings& s) {
    const int before = traced["b.keys"];
    for (int i = 0; i < 2; ++i) Call(o, {&x, y}, s).run();
    return traced["b.keys"] - before;
  };
  const Tensor x = iota({2, 3}), row = iota({3}), k = iota({2, 3}, i32);
  CHECK_EQ(traces(x, nullptr, {}), 1);
  CHECK_EQ(traces(x, nullptr, {{"mode", std::string("a")}, {"ints", Ints{1}}, {"f", 1.}, {"z", 0}}), 0);
  CHECK_EQ(traces(x, &x, {}), 1);
  CHECK_EQ(traces(x, &row, {}), 1);
  CHECK_EQ(traces(k, nullptr, {}), 1);
  CHECK_EQ(traces(iota({3, 2}), nullptr, {}), 1);
  CHECK_EQ(traces(iota({6}), nullptr, {}), 1);
  CHECK_EQ(traces(x, nullptr, {{"mode", std::string("b")}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"mode", std::string("ab")}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"ints", Ints{2}}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"ints", Ints{1, 2}}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"f", 2.}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"kind", f32}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"kind", i32}}), 1);
  CHECK_EQ(traces(x, nullptr, {{"z", 0.}}), 1);
  CHECK_EQ(traces(x, nullptr, {}), 0);
  for (int n = 0; n < 1100; ++n) traces(iota({1}), nullptr, {{"f", 10. + n}});  // more than the cache holds
  CHECK_EQ(traces(iota({1}), nullptr, {{"f", 1109.}}), 0);
}

// ---- any sizes --------------------------------------------------------------------------------------------------

TEST(one_program_for_all_sizes) {
  // Rows of x (n, m) as a vector twice as long as n, plus scale * m.
  const Op& o = composite(
      "b.sizes",
      [](Tracing& t) -> std::vector<int> {
        ProgramBuilder& b = t.b;
        const TensorType& x = b.value(t.in[0]);
        const int n = b.number({.op = Number::size, .a = t.in[0], .b = 0});
        const int m = b.number({.op = Number::size, .a = t.in[0], .b = 1});
        const int two = b.number({.op = Number::integer, .i = 2});
        const int zero = b.number({.op = Number::integer, .i = 0});
        b.guard(x.size(0) > 1 ? Guard::less : Guard::less_equal,
                x.size(0) > 1 ? b.number({.op = Number::integer, .i = 1}) : n,
                x.size(0) > 1 ? n : b.number({.op = Number::integer, .i = 1}));
        b.guard(Guard::less, zero, m);
        const int scale = b.number({.op = Number::attribute, .is_real = true, .a = 0});
        const int scaled = b.number({.op = Number::multiply, .is_real = true, .a = scale, .b = m});
        const int twice = b.number({.op = Number::multiply, .a = two, .b = n});
        const Op& full = op("full");
        const int ones =
            b.call(full, {}, attributes(full, {{"shape", Ints{2 * x.size(0)}}, {"fill_value", 0.}, {"dtype", f32}}),
                   {{0, 0, twice}});
        return {
            b.call(op("add"), {ones, b.constant(scalar_of(recorder::number(0, f32)), scaled)}, op("add").defaults)};
      },
      1,
      {.shape = "repeat",
       .dtype = "same",
       .params = {{.name = "scale", .kind = ParamKind::f64, .fallback = {.kind = AttrDefault::f64, .f = 1}},
                  {.name = "repeats", .kind = ParamKind::i64, .fallback = {.kind = AttrDefault::i64, .i = 1}},
                  {.name = "axis", .kind = ParamKind::i64, .fallback = {.kind = AttrDefault::none}}}});
  for_any_sizes.insert("b.sizes");
  const auto run = [&](const Ints& shape, double scale) {
    const Tensor x = iota(shape);
    return values(Call(o, {&x}, {{"scale", scale}}).run());
  };
  CHECK_EQ(run({2, 2}, 1), "2 2 2 2");
  CHECK_EQ(traced["b.sizes"], 1);
  CHECK_EQ(run({2, 2}, 2.5), "5 5 5 5");
  CHECK_THROWS(Error, "its decomposition gives shape (6,), its shape rule says (9,)", run({3, 3}, 1));
  CHECK_EQ(traced["b.sizes"], 1);
  CHECK_EQ(run({1, 2}, 3), "6 6");  // another branch
  CHECK_EQ(traced["b.sizes"], 2);
  CHECK_EQ(run({2, 2}, 1), "2 2 2 2");
  CHECK_EQ(run({1, 2}, 1), "2 2");
  CHECK_EQ(traced["b.sizes"], 2);
}

TEST(numbers) {
  NumberTable table;
  const auto integer = [&](int64_t i) { return table.add({.op = Number::integer, .i = i}); };
  const auto folded = [&](Number::Op op, int64_t a, int64_t b) -> std::string {
    const int entry = table.add({.op = op, .a = integer(a), .b = integer(b)});
    const Number& n = table.entries()[size_t(entry)];
    return n.op == Number::integer ? std::to_string(n.i) : "none";
  };
  CHECK_EQ(folded(Number::floor_divide, -7, 2) + " " + folded(Number::modulo, -7, 2), "-4 1");
  CHECK_EQ(folded(Number::floor_divide, 7, -2) + " " + folded(Number::modulo, 7, -2), "-4 -1");
  CHECK_EQ(folded(Number::floor_divide, 1, 0) + " " + folded(Number::floor_divide, INT64_MIN, -1), "none none");
  CHECK_EQ(folded(Number::multiply, int64_t{1} << 62, 2) + " " + folded(Number::shift_left, 1, 63), "none none");
  CHECK_EQ(folded(Number::shift_left, 3, 4) + " " + folded(Number::minimum, 3, 4), "48 3");
  CHECK_EQ(table.entries()[size_t(table.add({.op = Number::bit_length, .a = integer(255)}))].i, 8);
  const int size = table.add({.op = Number::size, .a = 3, .b = 1});
  CHECK_EQ(table.add({.op = Number::size, .a = 3, .b = 1}), size);
}

// ---- memory -----------------------------------------------------------------------------------------------------

TEST(dying_values_lend_their_memory) {
  const Op& o = composite("b.chain", [](Tracing& t) -> std::vector<int> {
    int v = t.call("multiply", {t.in[0], t.in[1]});
    for (int i = 0; i < 4; ++i) v = t.call("add", {v, t.number(1)});
    return {t.call("add", {t.in[1], v})};
  });
  const Tensor x = iota({1 << 14}), y = x;
  const uint64_t held = in_use(device());
  reset_peak_memory(device());
  seen.clear();
  const Tensor out = Call(o, {&x, &y}).run();
  CHECK_EQ(memory_stats(device()).peak - held, x.bytes());
  CHECK_EQ(in_use(device()) - held, x.bytes());
  CHECK_EQ(times_seen("copy"), 0);
  CHECK_EQ(seen.size(), 6u);
  CHECK_EQ(get(f32, address(out.view, 3)), 16.);
  CHECK_EQ(get(f32, address(x.view, 3)), 3.);
}

TEST(living_values_keep_theirs) {
  const Op& o = composite(
      "b.living",
      [](Tracing& t) -> std::vector<int> {
        const int a = t.call("add", {t.in[0], t.number(1)});               // x + 1
        const int b = t.call("add", {a, t.number(1)});                     // a lives on
        const int view = t.call("reshape", {a}, {{"shape", Ints{3, 2}}});  // and so does its memory in a view
        const int c = t.call("add", {a, b});                               // a's last use: not its memory
        const int flat = t.call("reshape", {view}, {{"shape", Ints{2, 3}}});
        const int d = t.call("add", {c, flat});  // 3x + 4
        const int same = t.call("add", {d, d});  // one value twice
        return {t.call("add", {same, t.in[0]})};
      },
      1);
  const Tensor x = iota({2, 3});
  CHECK_EQ(values(Call(o, {&x}).run()), "8 15 22 29 36 43");
  CHECK_EQ(values(x), "0 1 2 3 4 5");
  CHECK_EQ(times_seen("copy"), 0);
}

TEST(operands_are_never_written) {
  const Op& o = composite(
      "b.operands",
      [](Tracing& t) -> std::vector<int> {
        const int view = t.call("reshape", {t.in[0]}, {{"shape", Ints{6}}});
        const int back = t.call("reshape", {t.call("add", {view, t.number(1)})}, {{"shape", Ints{2, 3}}});
        return {t.call("add", {back, t.call("reshape", {view}, {{"shape", Ints{2, 3}}})})};
      },
      1);
  Tensor x = iota({2, 3});
  CHECK_EQ(values(Call(o, {&x}).run()), "1 3 5 7 9 11");
  CHECK_EQ(values(x), "0 1 2 3 4 5");
  CHECK_EQ(values(update("b.operands", x, {})), "1 3 5 7 9 11");  // nor in the in-place form
}

TEST(outputs_that_are_operands_or_views) {
  OpSpec two{.n_out = 2};
  const Op& o = composite("b.same", [](Tracing& t) -> std::vector<int> { return {t.in[0], t.in[0]}; }, 1, two);
  Tensor x = iota({2, 3});
  Call call(o, {&x});
  call.run();
  CHECK(call.out[0].storage == x.storage && call.out[1].storage == x.storage);
  const Tensor one = number(1);
  update("add", call.out[1], {&one});
  CHECK_EQ(values(call.out[1]), "1 2 3 4 5 6");
  CHECK_EQ(values(call.out[0]), "0 1 2 3 4 5");
  CHECK_EQ(values(x), "0 1 2 3 4 5");

  OpSpec given{.shape = "matrix_transpose", .dtype = "same"};
  const Op& turned = composite(
      "b.turned",
      [](Tracing& t) -> std::vector<int> {
        return {t.call("matrix_transpose", {t.call("add", {t.in[0], t.number(1)})})};
      },
      1, given);
  CHECK_EQ(values(Call(turned, {&x}).run()), "1 4 2 5 3 6");
  CHECK_EQ(values(Call(turned, {&call.out[0]}).run()), "1 4 2 5 3 6");
}

TEST(chains_of_set_slice_work_in_place) {
  const Op& o =
      composite("b.build",
                [](Tracing& t) -> std::vector<int> {
                  const auto set = [&](int x, int v, Ints start, Ints stop) {
                    return t.call("set_slice", {x, v}, {{"start", start}, {"stop", stop}, {"step", Ints{1, 1}}});
                  };
                  int v = t.call("full", {}, {{"shape", Ints{4, 3}}, {"fill_value", 7.}, {"dtype", f32}});
                  v = set(v, t.in[0], {0, 0}, {2, 3});
                  v = set(v, t.number(1), {2, 1}, {4, 2});
                  const int kept = v;
                  v = set(v, t.in[0], {1, 0}, {3, 3});  // `kept` lives: a copy
                  return {t.call("add", {v, kept})};
                },
                1, {.shape = "tile", .dtype = "same", .params = {{"repetitions", ParamKind::i64s}}});
  const Tensor x = iota({2, 3});
  seen.clear();
  CHECK_EQ(values(Call(o, {&x}, {{"repetitions", Ints{2, 1}}}).run()), "0 2 4 3 5 7 10 5 12 14 2 14");
  CHECK_EQ(times_seen("copy"), 4);
  CHECK_EQ(values(x), "0 1 2 3 4 5");

  const Op& onto_itself = composite(
      "b.itself",
      [](Tracing& t) -> std::vector<int> {
        const int v = t.call("add", {t.in[0], t.number(1)});
        return {t.call("set_slice", {v, v}, {{"start", Ints{0, 0}}, {"stop", Ints{2, 3}}, {"step", Ints{1, 1}}})};
      },
      1);
  CHECK_EQ(values(Call(onto_itself, {&x}).run()), "1 2 3 4 5 6");
}

// ---- constants and attributes -----------------------------------------------------------------------------------

TEST(constants) {
  const Op& o = composite("b.constant", [](Tracing& t) -> std::vector<int> { return {t.number(3)}; }, 1);
  const Tensor nought = iota({});
  for (int i = 0; i < 2; ++i) {
    const Tensor out = Call(o, {&nought}).run();
    CHECK(out.device == &device() && out.storage);
    CHECK_EQ(values(out), "3");
  }
  const Op& views = composite(
      "b.views",
      [](Tracing& t) -> std::vector<int> {
        return {t.call("add", {t.call("broadcast_to", {t.number(2)}, {{"shape", Ints{2, 3}}}), t.in[0]})};
      },
      1);
  const Tensor x = iota({2, 3});
  CHECK_EQ(values(Call(views, {&x}).run()), "2 3 4 5 6 7");
}

TEST(programs_own_what_attributes_point_to) {
  OpSpec spec{.shape = "same", .dtype = "same"};
  const Op& o = composite(
      "b.owns",
      [](Tracing& t) -> std::vector<int> {
        const Op& full = op("full");
        std::vector<double> complex{5, 0};
        Attrs attrs = attributes(full, {{"dtype", f32}});
        const Ints shape{2, 3};
        attrs.at[0] = {DVT_A_I64S, 2, {.is = shape.data()}};
        attrs.at[1] = {DVT_A_F64S, 2, {.fs = complex.data()}};
        int v = t.b.call(full, {}, attrs);
        std::fill(complex.begin(), complex.end(), -1);
        for (int i = 0; i < 20; ++i)  // nodes are relocated as the program grows
          v = t.call("permute_dims", {t.call("reshape", {v}, {{"shape", Ints{3, 2}}})}, {{"axes", Ints{-1, 0}}});
        std::string mode = "fine";
        Attrs named = attributes(op("b.named"), {});
        named.at[0] = {DVT_A_STR, 4, {.s = mode.c_str()}};
        v = t.b.call(op("b.named"), {v}, named);
        mode = "gone";
        return {t.call("add", {v, t.in[0]})};
      },
      1, spec);
  spec.params = {{.name = "mode", .kind = ParamKind::str, .fallback = {.kind = AttrDefault::str}}};
  composite(
      "b.named",
      [](Tracing& t) -> std::vector<int> {
        CHECK_EQ(t.inv.attrs.str(0), "fine");
        return t.in;
      },
      1, spec);
  const Tensor x = iota({2, 3});
  for (int i = 0; i < 2; ++i) CHECK_EQ(values(Call(o, {&x}).run()), "5 6 7 8 9 10");
}

TEST(copies_of_attributes) {
  const auto list = [](const Attrs& a, int i) { return to_string(a.i64s(i)); };
  const int64_t theirs[] = {8, 9};
  auto* a = new Attrs;
  a->set_ints(0, Ints{1, 2, 3});
  a->set_ints(1, Ints{});
  a->set_ints(2, Ints{4});
  a->at[3] = {DVT_A_I64S, 2, {.is = theirs}};
  const Attrs b = *a;
  Attrs c;
  c.set_ints(0, Ints(56, 7));
  c = b;
  std::fill_n(a->ints, 56, -1);
  delete a;
  CHECK_EQ(list(b, 0) + list(b, 1) + list(b, 2) + list(c, 0) + list(c, 3), "(1, 2, 3)()(4,)(1, 2, 3)(8, 9)");
  CHECK(b.at[3].v.is == theirs && c.at[0].v.is == c.ints);
  c.set_ints(4, Ints(52, 1));
  CHECK_THROWS(Error, "attributes with more than 56 integers in all", c.set_ints(5, Ints{1}));
  CHECK_EQ(c.room(1), static_cast<int64_t*>(nullptr));
}

// ---- float16, many operands, nesting ----------------------------------------------------------------------------

TEST(float16_goes_through_float32) {
  const Op& o = composite("b.half",
                          [](Tracing& t) -> std::vector<int> {
                            CHECK(t.b.value(t.in[0]).dtype == f32);
                            return {t.call("add", {t.call("multiply", {t.in[0], t.in[1]}), t.in[0]})};
                          },
                          2, {.flags = op_half_in_f32});
  const Tensor x = array(device(), {3}, {1, 2, 3}, f16), y = iota({3});
  const Tensor over = array(device(), {1}, {1 + 0x1p-10}, f16), under = number(1 - 0x1p-11, f16);
  seen.clear();
  const Tensor out = Call(o, {&over, &under}).run();
  CHECK(out.dtype == f16);
  CHECK_EQ(values(out), "2.00195");  // rounded once; twice gives 2
  CHECK_EQ(times_seen("astype"), 2);
  CHECK_EQ(values(Call(o, {&x, &x}).run()), "2 6 12");
  CHECK(Call(o, {&x, &y}).run().dtype == f32);
  CHECK_EQ(values(x), "1 2 3");

  const Op& same = composite("b.half_same", [](Tracing& t) -> std::vector<int> { return {t.in[0]}; }, 1,
                             {.flags = op_half_in_f32});
  CHECK(Call(same, {&x}).run().dtype == f16);
  CHECK_EQ(values(Call(same, {&x}).run()), "1 2 3");
}

TEST(variadic_decompositions) {
  OpSpec spec{.shape = "broadcast", .dtype = "promote", .flags = op_half_in_f32};
  spec.params = {{.name = "xs", .kind = ParamKind::value, .variadic = true}};
  const Op& o = composite(
      "b.total",
      [](Tracing& t) -> std::vector<int> {
        int v = t.in[0];
        for (size_t i = 1; i < t.in.size(); ++i) v = t.call("add", {v, t.in[i]});
        return {v};
      },
      0, spec);
  const Tensor x = iota({2}), h = array(device(), {1}, {1}, f16), one = number(1);
  std::vector<const Tensor*> many(20, &x);
  CHECK_EQ(values(Call(o, many).run()), "0 20");
  many[3] = &h, many[19] = &one;
  CHECK_EQ(values(Call(o, many).run()), "2 20");
  CHECK_EQ(traced["b.total"], 2);
  CHECK_EQ(values(Call(o, {&x}).run()), "0 1");
  CHECK_EQ(values(Call(o, std::vector<const Tensor*>(12, &h)).run()), "12");
  CHECK(Call(o, std::vector<const Tensor*>(12, &h)).run().dtype == f16);
  // Inside a program as well.
  const Op& outer = composite(
      "b.outer", [](Tracing& t) -> std::vector<int> { return {t.call("b.total", std::vector<int>(11, t.in[0]))}; },
      1);
  CHECK_EQ(values(Call(outer, {&x}).run()), "0 11");
}

TEST(decompositions_where_rows_refuse) {
  const Op& o =
      composite("b.refused", [](Tracing& t) -> std::vector<int> { return {t.call("add", {t.in[0], t.in[0]})}; }, 1);
  static bool refuse = true;
  add_kernel(device(),
             make_row({"b.refused", {takes(f32)}, {takes(f32, 0)}, copy_elements, [](const dvt_call&, dvt_answer&) {
                         return refuse ? DVT_UNSUPPORTED : DVT_OK;
                       }}));
  const Tensor x = iota({2});
  CHECK_EQ(values(Call(o, {&x}).run()), "0 2");
  refuse = false;
  CHECK_EQ(values(Call(o, {&x}).run()), "0 1");
}

// ---- what goes wrong --------------------------------------------------------------------------------------------

TEST(an_error_in_the_middle) {
  const Op& o = composite(
      "b.fails",
      [](Tracing& t) -> std::vector<int> {
        const int a = t.call("add", {t.in[0], t.number(1)});
        const int b = t.call("multiply", {a, t.in[0]});
        return {t.call("add", {b, a})};
      },
      1);
  Tensor x = iota({3});
  const uint64_t held = in_use(device());
  fail_at = 2;
  CHECK_THROWS(Error, "[multiply] a fuse has blown", Call(o, {&x}).run());
  CHECK_THROWS(Error, "[multiply] a fuse has blown", update("b.fails", x, {}));
  CHECK_EQ(in_use(device()), held);
  CHECK_EQ(values(x), "0 1 2");
  fail_at = 1e9;
  CHECK_EQ(values(Call(o, {&x}).run()), "1 4 9");
}

TEST(wrong_decompositions) {
  const Tensor x = iota({2, 3});
  const auto fails = [&](const char* name, Body decomposition, const char* why, OpSpec spec = {}) {
    const Op& o = composite(name, std::move(decomposition), 1, spec);
    for (int i = 0; i < 2; ++i)
      CHECK_THROWS(Error, "[" + std::string(name) + "] its decomposition gives " + why, Call(o, {&x}).run());
  };
  fails(
      "b.shape",
      [](Tracing& t) -> std::vector<int> { return {t.call("reshape", {t.in[0]}, {{"shape", Ints{6}}})}; },
      "shape (6,), its shape rule says (2, 3)");
  fails(
      "b.scalar", [](Tracing& t) -> std::vector<int> { return {t.number(1)}; },
      "shape (), its shape rule says (2, 3)");
  fails("b.number", [](Tracing& t) -> std::vector<int> { return {t.in[0], t.in[0]}; }, "2 arrays: expected 1");
  fails("b.none", [](Tracing&) -> std::vector<int> { return {}; }, "0 arrays: expected 2", {.n_out = 2});
  fails(
      "b.dtype", [](Tracing& t) -> std::vector<int> { return {t.call("astype", {t.in[0]}, {{"dtype", i32}})}; },
      "int32, its dtype rule says float32");
  const Op& inner = composite(
      "b.inner", [](Tracing& t) -> std::vector<int> { return {t.call("take", {t.in[0], t.in[0]}, {{"axis", 0}})}; },
      1);
  CHECK_THROWS(Error, "[take] indices is float32: expected an integer dtype", Call(inner, {&x}).run());
}

CHECK_MAIN
