// The arguments of a kernel: layouts, scalars, casts, memory.
#include <thread>

#include "dispatch/recorder.hpp"

using namespace recorder;

namespace {
constexpr DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32, i64 = DType::i64;

// Rows of binary ops, by the operands that they accept.
Row binary(const std::string& op, int flags, int align_log2 = 0, int align_out = 0) {
  const dvt_operand in = takes(f32, flags, align_log2);
  return {op, {in, in}, {takes(f32, 0, align_out)}, computes(plus)};
}
Device& device() {
  static Device& d =
      plugin("kernels",
             basic_rows() + std::vector<Row>{binary("t.plain", kPlain),
                                             binary("t.compact", DVT_O_HOST_SCALAR),
                                             binary("t.device_scalars", DVT_O_STRIDED),
                                             binary("t.aligned", kPlain, 4),
                                             binary("t.aligned_out", kPlain, 0, 5),
                                             binary("t.first", kPlain),
                                             binary("t.lonely", kPlain),
                                             {"dvt.sum",
                                              {takes(f32)},
                                              {takes(f32, 0)},
                                              [](const dvt_call& c) {
                                                double sum = 0;
                                                for (int64_t i = 0; i < count(*c.in[0]); ++i)
                                                  sum += get(f32, address(*c.in[0], i));
                                                put(f32, c.out[0]->data, sum);
                                                return DVT_OK;
                                              }},
                                             {"dvt.take",
                                              {any(32, 0), takes(i64, 0)},
                                              {any(32, 0)},
                                              [](const dvt_call& c) {
                                                for (int64_t i = 0; i < count(*c.out[0]); ++i)
                                                  std::memcpy(
                                                      address(*c.out[0], i),
                                                      address(*c.in[0], int64_t(get(i64, address(*c.in[1], i)))),
                                                      4);
                                                return DVT_OK;
                                              }},
                                             {"dvt.equal",
                                              {takes(f32, kPlain), takes(f32, kPlain)},
                                              {takes(DType::b8, 0)},
                                              computes([](const Doubles& x) { return x[0] == x[1]; })},
                                             {"dvt.where",
                                              {takes(DType::b8), takes(f32), takes(f32)},
                                              {takes(f32, 0)},
                                              computes([](const Doubles& x) { return x[0] ? x[1] : x[2]; })}})
          .device();
  static const bool registered = [] {
    for (const char* name : {"plain", "compact", "device_scalars", "aligned", "aligned_out", "lonely"}) {
      const std::string full = std::string("t.") + name;
      register_op({.name = full,
                   .shape = "broadcast",
                   .dtype = "promote",
                   .params = {{"x1", ParamKind::value}, {"x2", ParamKind::value}}});
    }
    register_op({.name = "t.first",
                 .shape = "same",
                 .dtype = "promote",
                 .params = {{"x1", ParamKind::value}, {"x2", ParamKind::value}}});
    return true;
  }();
  (void)registered;
  return d;
}
Tensor iota(const Ints& shape, DType t = f32) { return array(device(), shape, {}, t); }

// The last call of a kernel of `op`.
std::string saw(const std::string& op, const Tensor& x, const Tensor& y) {
  seen.clear();
  const Tensor out = run(op, {&x, &y});
  const std::string line = seen.empty() ? "" : seen.back();
  return line.substr(line.find(' ') + 1);
}
std::string sum_of(const Tensor& x, const Tensor& y) {  // through a copy
  Doubles v;
  const Tensor a =
      broadcast_view(x, run("broadcast_to", {&x}, {{"shape", Ints(y.shape().begin(), y.shape().end())}}).shape());
  for (uint64_t i = 0; i < y.numel; ++i)
    v.push_back(get(f32, address(a.view, int64_t(i))) + get(f32, address(y.view, int64_t(i))));
  return show(v);
}
}  // namespace

TEST(views_share_the_buffer) {
  const Tensor x = array(device(), {2, 3});
  {
    const Tensor y = permute(x, {1, 0});
    CHECK(y.storage == x.storage && y.view.data == x.view.data && x.storage->refs == 2);
    const Tensor z = slice(y, {1, 0}, {3, 2}, {1, 1});
    CHECK_EQ(values(z), "1 4 2 5");
    CHECK(z.storage == x.storage && x.storage->refs == 3);
  }
  CHECK(x.storage->refs == 1);
  const Tensor five = number(5);
  CHECK_EQ(values(run("broadcast_to", {&five}, {{"shape", Ints{3}}}, &device())), "5 5 5");
}

TEST(axes_are_merged) {
  const Tensor x = iota({2, 3, 4}), row = iota({4}), plane = iota({3, 4}), column = iota({3, 1});
  CHECK_EQ(saw("t.plain", x, x), "f32(24)/(1), f32(24)/(1) -> f32(24)/(1)");
  CHECK_EQ(saw("t.plain", row, x), "f32(6, 4)/(0, 1), f32(6, 4)/(4, 1) -> f32(6, 4)/(4, 1)");
  CHECK_EQ(saw("t.plain", plane, x), "f32(2, 12)/(0, 1), f32(2, 12)/(12, 1) -> f32(2, 12)/(12, 1)");
  CHECK_EQ(saw("t.plain", column, x), "f32(2, 3, 4)/(0, 1, 0), f32(2, 3, 4)/(12, 4, 1) -> f32(2, 3, 4)/(12, 4, 1)");
  for (const Tensor& a : {row, plane, column, slice(iota({2, 3, 9}), {0, 0, 1}, {2, 3, 9}, {1, 1, 2})})
    CHECK_EQ(values(run("t.plain", {&a, &x})), sum_of(a, x));

  const Tensor t = permute(x, {2, 0, 1}), spread = slice(iota({4, 6}), {0, 0}, {4, 6}, {1, 2});
  CHECK_EQ(saw("t.plain", t, t), "f32(4, 6)/(1, 4), f32(4, 6)/(1, 4) -> f32(4, 6)/(6, 1)");
  CHECK_EQ(saw("t.plain", spread, spread), "f32(12)/(2), f32(12)/(2) -> f32(12)/(1)");
  const Tensor middle = slice(iota({4, 5, 6}), {1, 0, 0}, {3, 5, 6}, {1, 1, 1});
  CHECK_EQ(saw("t.plain", middle, middle), "f32(60)/(1), f32(60)/(1) -> f32(60)/(1)");
  const Tensor inner = slice(iota({4, 5, 6}), {0, 1, 0}, {4, 4, 6}, {1, 1, 1});
  CHECK_EQ(saw("t.plain", inner, inner), "f32(4, 18)/(30, 1), f32(4, 18)/(30, 1) -> f32(4, 18)/(18, 1)");
}

TEST(axes_of_size_one_and_single_elements) {
  const Tensor x = iota({2, 1, 3}), one = iota({1, 1}), t = permute(x, {1, 2, 0});
  CHECK_EQ(saw("t.plain", x, one), "f32(6)/(1), f32(6)/(0) -> f32(6)/(1)");
  CHECK_EQ(saw("t.plain", t, t), "f32(3, 2)/(1, 3), f32(3, 2)/(1, 3) -> f32(3, 2)/(2, 1)");
  CHECK_EQ(saw("t.plain", one, one), "f32(1)/(1), f32(1)/(1) -> f32(1)/(1)");
  const Tensor nought = iota({});
  CHECK_EQ(saw("t.plain", nought, nought), "f32(1)/(1), f32(1)/(1) -> f32(1)/(1)");
  CHECK_EQ(saw("t.plain", nought, x), "f32(6)/(0), f32(6)/(1) -> f32(6)/(1)");
}

TEST(sixteen_axes) {
  const Ints twos(16, 2);
  const Tensor x = iota(twos), half = iota({2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1});
  CHECK_EQ(saw("t.plain", x, x), "f32(65536)/(1), f32(65536)/(1) -> f32(65536)/(1)");
  const std::string worst = saw("t.plain", half, x);
  CHECK(worst.starts_with("f32(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)/(128, 0, 64, 0, 32, 0, "));
  CHECK_EQ(values(run("t.plain", {&half, &x})), sum_of(half, x));
  const Tensor backwards = permute(x, {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  CHECK_EQ(values(run("t.plain", {&backwards, &x})), sum_of(backwards, x));
  CHECK_THROWS(Error, "[expand_dims]", run("expand_dims", {&x}, {{"axis", Ints{0}}}));
}

TEST(other_ops_see_true_shapes) {
  const Tensor x = permute(iota({2, 3}), {1, 0}), nought = iota({});
  const Settings all{{"axis", nullptr}, {"dtype", nullptr}, {"keepdims", false}};
  CHECK_EQ(values(run("sum", {&x}, all)), "15");
  CHECK_EQ(seen.back(), "sum: f32(3, 2)/(1, 3) -> f32()/()");
  CHECK_EQ(values(run("sum", {&nought}, all)), "0");
  CHECK_EQ(seen.back(), "sum: f32()/() -> f32()/()");
}

// ---- scalars ----------------------------------------------------------------------------------------------------

TEST(host_scalars) {
  const Tensor x = iota({2, 3}), t = permute(x, {1, 0}), nought = iota({}), two = number(2);
  CHECK_EQ(saw("t.plain", x, two), "f32(6)/(1), host f32()/() -> f32(6)/(1)");
  CHECK_EQ(saw("t.plain", two, t), "host f32()/(), f32(3, 2)/(1, 3) -> f32(3, 2)/(2, 1)");
  CHECK_EQ(saw("t.plain", nought, two), "f32(1)/(1), host f32()/() -> f32(1)/(1)");
  CHECK_EQ(saw("t.compact", two, t), "host f32()/(), f32(6)/(1) -> f32(6)/(1)");
  CHECK_EQ(values(run("t.compact", {&two, &t})), "2 5 3 6 4 7");
  CHECK_EQ(values(run("t.plain", {&two, &two}, {}, &device())), "4");
  CHECK_EQ(seen.back(), "plain: host f32()/(), host f32()/() -> f32(1)/(1)");
}

TEST(host_scalars_that_a_row_does_not_take) {
  const Tensor x = iota({2, 3}), two = number(2), nought = iota({});
  CHECK_EQ(saw("t.device_scalars", x, two), "f32(6)/(1), f32(6)/(0) -> f32(6)/(1)");
  CHECK_EQ(saw("t.device_scalars", nought, two), "f32(1)/(1), f32(1)/(1) -> f32(1)/(1)");
  CHECK_EQ(values(run("t.device_scalars", {&x, &two})), "2 3 4 5 6 7");
  const Tensor k = number(1, i64);
  CHECK_EQ(values(run("take", {&x, &k}, {{"axis", 1}})),
           "1 1");  // take itself is not run on the host, only the copy
  CHECK_EQ(seen.back(), "take: f32(2, 3)/(3, 1), i64()/() -> f32(2)/(1)");
}

TEST(casts) {
  const Tensor x = iota({3}), k = iota({3}, i32), d = iota({3}, f64), seven = number(7, i32);
  seen.clear();
  CHECK_EQ(values(run("t.plain", {&k, &x})), "0 2 4");
  CHECK_EQ(seen.at(0), "astype: i32(3)/(1) -> f32(3)/(1)");
  CHECK_EQ(seen.size(), 2u);
  seen.clear();
  CHECK_EQ(values(run("t.plain", {&x, &seven})), "7 8 9");  // on the host
  CHECK_EQ(seen.size(), 1u);
  CHECK_THROWS(Error, "[t.plain] float64, float64 is not supported", run("t.plain", {&x, &d}));
  const Tensor mask = array(device(), {3}, {1, 0, 1}, DType::b8);
  CHECK_EQ(values(run("where", {&mask, &k, &x})), "0 1 2");
  CHECK_THROWS(Error, "[where] condition is float32: expected bool", run("where", {&x, &x, &x}));
  CHECK_EQ(values(run("take", {&x, &k}, {{"axis", 0}})), "0 1 2");  // indices become int64
  CHECK(seen.back().find("i64(3)/(1)") != std::string::npos);
}

TEST(scalars_are_cast_with_one_rounding) {
  const auto cast_to = [](DType t, double v) { return cast_scalar(number(v, f64), t); };
  CHECK_EQ(values(cast_to(DType::f16, 1 + 0x1p-11 + 0x1p-40)), show({1 + 0x1p-10}));
  uint16_t bits;
  std::memcpy(&bits, cast_to(DType::bf16, 1 + 0x1p-8 + 0x1p-40).view.data, 2);
  CHECK_EQ(bits, 0x3F81);
  std::memcpy(&bits, cast_to(DType::bf16, -(1 + 0x1p-8 - 0x1p-40)).view.data, 2);
  CHECK_EQ(bits, 0xBF80);
  CHECK_EQ(values(cast_to(DType::u8, 300)), "44");
  CHECK_EQ(values(cast_to(DType::i8, -1.9)), "-1");
  CHECK_EQ(values(cast_to(DType::b8, 0.25)), "1");
  const float imaginary[2] = {0, 2};
  const Tensor j = host_scalar(DType::c64, imaginary);
  CHECK_EQ(values(cast_scalar(j, DType::b8)), "1");
  double wide[2];
  std::memcpy(wide, cast_scalar(j, DType::c128).view.data, 16);
  CHECK(wide[0] == 0 && wide[1] == 2);
}

// ---- what a row does not take -----------------------------------------------------------------------------------

TEST(rows_without_strides_get_copies) {
  const Tensor x = iota({2, 3}), t = permute(iota({3, 2}), {1, 0}), row = iota({3}), one = iota({1});
  const std::string flat = "f32(6)/(1), f32(6)/(1) -> f32(6)/(1)";
  for (const Tensor& other : {t, row, one, broadcast_view(row, x.shape())}) {
    CHECK_EQ(saw("t.compact", x, other), flat);
    CHECK_EQ(seen.size(), 2u);
    CHECK_EQ(values(run("t.compact", {&x, &other})), sum_of(other, x));
  }
  CHECK_EQ(saw("t.compact", x, x), flat);
  CHECK_EQ(seen.size(), 1u);
  const Tensor k = slice(array(device(), {4}, {0, 9, 1, 9}, i64), {0}, {4}, {2});
  CHECK_EQ(values(run("take", {&row, &k}, {{"axis", 0}})), "0 1");
}

TEST(alignment) {
  const Tensor x = iota({9}), tail = slice(x, {1}, {9}, {1}), head = slice(x, {0}, {8}, {1}), two = number(2);
  saw("t.aligned", head, head);
  CHECK_EQ(times_seen("copy"), 0);
  saw("t.aligned", tail, head);
  CHECK_EQ(times_seen("copy"), 1);
  CHECK_EQ(values(run("t.aligned", {&tail, &head})), "1 3 5 7 9 11 13 15");
  Tensor odd = two;  // a scalar stays in place
  for (int i = 0; i < 2; ++i) {
    alignas(16) std::byte memory[sizeof(Tensor) + 16];
    Tensor* shifted = new (memory + 8 * i) Tensor(two);
    CHECK_EQ(values(run("t.aligned", {&head, shifted})), "2 3 4 5 6 7 8 9");
    shifted->~Tensor();
  }
}

// The workspace that it requests must suffice for that.
TEST(a_query_gets_what_run_will_get) {
  static std::string asked, got;
  const auto add = [](const std::string& op, const std::string& shape, int flags) {
    register_op({.name = op,
                 .shape = shape,
                 .dtype = "promote",
                 .params = {{"x1", ParamKind::value}, {"x2", ParamKind::value}}});
    const auto operands = [](const dvt_call& c) { return describe(c.in[0]) + ", " + describe(c.in[1]); };
    Row row = binary(op, flags, 4);
    row.query = [=](const dvt_call& c, dvt_answer&) { return asked = operands(c), DVT_OK; };
    row.run = [=](const dvt_call& c) { return got = operands(c), DVT_OK; };
    add_kernel(device(), make_row(row));
  };
  add("t.asked", "broadcast", kPlain);
  add("t.asked_compact", "broadcast", 0);
  add("t.asked_shapes", "matmul", DVT_O_STRIDED);
  const Tensor x = slice(iota({4, 9}), {0, 1}, {4, 9}, {1, 1}), y = iota({4, 8}), row = iota({8}),
               t = permute(iota({8, 4}), {1, 0}), two = number(2), nought = iota({});
  alignas(16) std::byte memory[2][sizeof(Tensor) + 16];  // one of two scalars is not aligned
  const Tensor* shifted[] = {new (memory[0]) Tensor(two), new (memory[1] + 8) Tensor(two)};
  for (const Tensor* first : {&x, &y, &t}) {
    for (const Tensor* other : {&x, &y, &t, &row, &two, &nought, shifted[0], shifted[1]})
      for (const std::string op : {"t.asked", "t.asked_compact"}) {
        run(op, {first, other});
        CHECK_EQ(asked, got);
      }
    for (const Tensor& other : {permute(x, {1, 0}), permute(y, {1, 0}), row}) {
      run("t.asked_shapes", {first, &other});
      CHECK_EQ(asked, got);
    }
  }
  for (const Tensor* s : shifted) s->~Tensor();
}

TEST(an_op_whose_rule_looks_at_one_operand) {
  const Tensor x = iota({2, 3}), row = iota({3}), bad = iota({4}), more = iota({5, 2, 3});
  CHECK_EQ(values(run("t.first", {&x, &row})), "0 2 4 3 5 7");
  const std::string why =
      "[t.first] x2 of shape (4,) does not broadcast to (2, 3), the shape that the op's rule 'same' gives";
  CHECK_THROWS(Error, why, run("t.first", {&x, &bad}));
  CHECK_THROWS(Error, "x2 of shape (5, 2, 3) does not broadcast", run("t.first", {&x, &more}));
  static const dvt_operand compact[] = {takes(f32, 0), takes(f32, 0), takes(f32, 0)};
  add_kernel(device(), make_row({"t.first", {compact[0], compact[1]}, {compact[2]}, computes(plus)}));
  CHECK_THROWS(Error, why, run("t.first", {&x, &bad}));
}

// ---- in place ---------------------------------------------------------------------------------------------------

namespace {
bool stays(const std::string& op, Tensor& x, const std::vector<const Tensor*>& others) {
  const void* before = x.view.data;
  const uint64_t held = in_use(device());
  update(op, x, others);
  CHECK(in_use(device()) <= held || before != x.view.data);
  return x.view.data == before;
}
}  // namespace

TEST(in_place_where_nobody_shares) {
  const Tensor one = number(1), row = iota({3});
  Tensor x = iota({2, 3});
  CHECK(stays("t.plain", x, {&one}));
  CHECK(stays("t.plain", x, {&row}));
  CHECK_EQ(values(x), "1 3 5 4 6 8");
  CHECK(stays("t.plain", x, {&x}));
  CHECK_EQ(values(x), "2 6 10 8 12 16");
  {
    const Tensor other = x, view = slice(x, {0, 1}, {2, 3}, {1, 1});
    CHECK(!stays("t.plain", x, {&one}));
    CHECK_EQ(values(other), "2 6 10 8 12 16");
    CHECK_EQ(values(view), "6 10 12 16");
  }
  CHECK(stays("t.plain", x, {&one}));
  Tensor part = slice(iota({4, 3}), {2, 0}, {4, 3}, {1, 1});  // the only owner of a part
  CHECK(stays("t.plain", part, {&one}));
  CHECK_EQ(values(part), "7 8 9 10 11 12");
  Tensor t = permute(iota({2, 3}), {1, 0});
  CHECK(!stays("t.plain", t, {&one}));
  CHECK_EQ(values(t), "1 4 2 5 3 6");
}

TEST(in_place_only_as_the_row_allows) {
  const Tensor one = number(1), wide = iota({2, 3});
  Tensor x = iota({3});
  CHECK(!stays("t.compact", x, {&one}));
  CHECK(!stays("equal", x, {&one}));  // another dtype
  Tensor y = iota({3}), k = iota({3}, i32);
  CHECK(!stays("t.plain", y, {&wide}));  // another shape
  CHECK(!stays("t.plain", k, {&one}));
  // The caller may pass the same memory twice, through two tensors.
  add_kernel(
      device(),
      make_row({"t.lonely", {takes(f32, kPlain), takes(f32, DVT_O_STRIDED)}, {takes(f32, 0)}, computes(plus)}));
  Tensor z = iota({3});
  CHECK(stays("t.lonely", z, {&one}));
  CHECK(!stays("t.lonely", z, {&z}));
  Call call(op("t.lonely"), {&z, &z});
  call.inv.replaced = &z;
  call.inv.infer();
  CHECK(call.inv.in_place);
  const Tensor first = z, second = z;
  call.in[0] = call.inv.replaced = &first, call.in[1] = &second;
  call.inv.run();
  CHECK(call.out[0].view.data != z.view.data);
  CHECK_EQ(values(call.out[0]), "4 8 12");
}

TEST(in_place_keeps_the_alignment_of_outputs) {
  const Tensor one = number(1);
  Tensor x = slice(iota({9}), {1}, {9}, {1}), y = slice(iota({9}), {0}, {8}, {1});
  CHECK(!stays("t.aligned_out", x, {&one}));
  CHECK(stays("t.aligned_out", y, {&one}));
  CHECK_EQ(values(x), "2 3 4 5 6 7 8 9");
  Tensor z = slice(iota({9}), {1}, {9}, {1});  // the input is copied; the output may start anywhere
  CHECK(stays("t.aligned", z, {&one}));
  CHECK_EQ(values(z), "2 3 4 5 6 7 8 9");
}

TEST(memory_of_others_is_not_written) {
  static float theirs[4] = {1, 2, 3, 4};
  Tensor x;
  x.set_type(f32, &device());
  x.set_shape(Ints{4});
  memory[reinterpret_cast<char*>(theirs)] = sizeof theirs;
  x.own(adopt(device(), *device().default_stream, theirs, [](Storage*) {}, nullptr));
  const Tensor one = number(1);
  CHECK(!stays("t.plain", x, {&one}));
  CHECK_EQ(values(x), "2 3 4 5");
  CHECK_EQ(theirs[0], 1.f);
}

// ---- regions ----------------------------------------------------------------------------------------------------

TEST(set_slice) {
  const auto set = [](Tensor& x, const Tensor& v, const Ints& start, const Ints& stop, const Ints& step) {
    return update("set_slice", x, {&v}, {{"start", start}, {"stop", stop}, {"step", step}});
  };
  Tensor x = iota({3, 4});
  const Tensor before = x, nine = number(9), row = array(device(), {1, 2}, {7, 8});
  seen.clear();
  set(x, nine, {1, 0}, {3, 4}, {1, 3});
  CHECK_EQ(values(x), "0 1 2 3 9 5 6 9 9 9 10 9" + std::string());
  CHECK_EQ(values(before), "0 1 2 3 4 5 6 7 8 9 10 11");
  CHECK_EQ(seen.at(0), "copy: f32(12)/(1) -> f32(12)/(1)");
  CHECK_EQ(seen.at(1), "copy: f32(2, 2)/(0, 0) -> f32(2, 2)/(4, 3)");
  const void* data = x.view.data;
  seen.clear();
  set(x, row, {0, 1}, {3, 3}, {2, 1});
  CHECK_EQ(values(x), "0 7 8 3 9 5 6 9 9 7 8 9");
  CHECK(x.view.data == data && seen.size() == 1);
  CHECK_EQ(seen.at(0), "copy: f32(2, 2)/(0, 1) -> f32(2, 2)/(8, 1)");
  set(x, nine, {1, 0}, {2, 4}, {1, 1});  // contiguous axes of the region are merged
  CHECK_EQ(seen.back(), "copy: f32(4)/(0) -> f32(4)/(1)");
  set(x, nine, {1, 1}, {1, 4}, {1, 1});  // nothing
  const Tensor k = iota({2}, i32);
  set(x, k, {0, 2}, {1, 4}, {1, 1});  // cast
  CHECK_EQ(values(x), "0 7 0 1 9 9 9 9 9 7 8 9");

  const Tensor upper = slice(x, {0, 0}, {2, 4}, {1, 1});  // x's own memory as the update
  set(x, upper, {1, 0}, {3, 4}, {1, 1});
  CHECK_EQ(values(x), "0 7 0 1 0 7 0 1 9 9 9 9");
  set(x, x, {0, 0}, {3, 4}, {1, 1});
  CHECK_EQ(values(x), "0 7 0 1 0 7 0 1 9 9 9 9");
  Tensor part = slice(iota({4, 4}), {2, 0}, {4, 4}, {1, 1});
  set(part, nine, {0, 1}, {2, 3}, {1, 1});
  CHECK_EQ(values(part), "8 9 9 11 12 9 9 15");
  Tensor t = permute(iota({2, 2}), {1, 0});
  set(t, nine, {0, 0}, {1, 1}, {1, 1});
  CHECK_EQ(values(t), "9 2 1 3");
  Tensor nought = iota({});
  set(nought, nine, {}, {}, {});
  CHECK_EQ(values(nought), "9");
}

TEST(copies_into_regions_query_the_row) {
  static bool asked = false;
  Row fast = basic_rows()[2], refusing = fast;
  fast.engine = "fast",
  fast.query = [](const dvt_call&, dvt_answer& a) { return asked = true, a.workspace = 64, DVT_OK; };
  fast.run = [](const dvt_call& c) { return CHECK_EQ(c.workspace_size, 64u), copy_elements(c); };
  refusing.engine = "refusing", refusing.query = [](const dvt_call&, dvt_answer&) { return DVT_UNSUPPORTED; };
  refusing.run = [](const dvt_call&) { return CHECK(false), DVT_OK; };
  Device& own = plugin("asked", {refusing, fast}).device();
  Tensor x = array(own, {4}), nine = number(9);
  update("set_slice", x, {&nine}, {{"start", Ints{1}}, {"stop", Ints{4}}, {"step", Ints{2}}});
  CHECK_EQ(values(x), "0 9 2 9");
  CHECK(asked);
  CHECK_EQ(seen.back(), "fast: f32(2)/(0) -> f32(2)/(2)");
}

// ---- empty arrays, and failure ----------------------------------------------------------------------------------

TEST(nothing_is_run_for_empty_outputs) {
  const Tensor empty = iota({0, 3}), row = iota({3}), one = number(1), k = array(device(), {0}, {}, i64);
  seen.clear();
  CHECK_EQ(to_string(run("t.plain", {&empty, &row}).shape()), "(0, 3)");
  CHECK_EQ(to_string(run("t.compact", {&one, &empty}).shape()), "(0, 3)");
  CHECK_EQ(to_string(run("take", {&row, &k}, {{"axis", 0}}).shape()), "(0,)");
  CHECK_EQ(seen.size(), 0u);
  CHECK_EQ(values(run("sum", {&empty}, {{"axis", nullptr}, {"dtype", nullptr}, {"keepdims", false}})),
           "0");  // except for empty inputs
}

TEST(a_failing_kernel_leaves_nothing_behind) {
  static dvt_status status = DVT_INDEX;
  Row failing = binary("t.fails", kPlain);
  failing.query = [](const dvt_call&, dvt_answer& a) { return a.workspace = 1 << 16, DVT_OK; };
  static Plugin* own = nullptr;
  failing.run = [](const dvt_call&) { return own->fail(status, "7 is too much"); };
  register_op({.name = "t.fails",
               .shape = "broadcast",
               .dtype = "promote",
               .params = {{"x1", ParamKind::value}, {"x2", ParamKind::value}}});
  own = &plugin("failing", basic_rows() + std::vector<Row>{failing});
  Tensor x = array(own->device(), {8}), t = permute(array(own->device(), {2, 4}), {1, 0}),
         k = array(own->device(), {1}, {}, i32);
  const uint64_t held = in_use(own->device());
  const auto fails_with = [&](dvt_status s, ErrorKind kind) {
    status = s;
    try {
      run("t.fails", {&t, &k});
    } catch (const Error& e) {
      CHECK(e.kind == kind);
      CHECK_EQ(std::string(e.what()), "[t.fails] 7 is too much");
    }
    CHECK_EQ(in_use(own->device()), held);
  };
  fails_with(DVT_INDEX, ErrorKind::index);
  fails_with(DVT_INVALID, ErrorKind::value);
  fails_with(DVT_INTERNAL, ErrorKind::runtime);
  CHECK_THROWS(Error, "too much", update("t.fails", x, {&k}));
  CHECK_EQ(values(x), "0 1 2 3 4 5 6 7");
  empty_cache(own->device());
  set_memory_limit(own->device(), memory_stats(own->device()).reserved + 4096);
  CHECK_THROWS(Error, "[memory] cannot allocate", run("t.fails", {&x, &k}));  // for the workspace
  set_memory_limit(own->device(), 0);
  CHECK_EQ(in_use(own->device()), held);
}

CHECK_MAIN
