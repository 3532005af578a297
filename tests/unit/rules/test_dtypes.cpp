// Promotion and the dtype rules.
#include "call.hpp"

namespace dovetail {
namespace {
const char* name(DType t) { return t == DType::none ? "none" : info(t).brief; }

DType by_brief(const std::string& brief) {
  for (int i = 0; i < kDTypes; ++i)
    if (brief == dtype_table[i].brief) return DType(i);
  return DType::none;
}

// The promotion table written out; rows and columns in the order of DType. "-" has no result.
const char* const expected_promotions[] = {
    "bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "i8 i8 i16 i32 i64 i16 i32 i64 - f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "i16 i16 i16 i32 i64 i16 i32 i64 - f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "i32 i32 i32 i32 i64 i32 i32 i64 - f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "i64 i64 i64 i64 i64 i64 i64 i64 - f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "u8 i16 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "u16 i32 i32 i32 i64 u16 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "u32 i64 i64 i64 i64 u32 u32 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "u64 - - - - u64 u64 u64 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128",
    "f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f8e4m3fn f32 f16 bf16 f32 "
    "f64 c64 c128",
    "f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f8e5m2 f32 f8e5m2 f16 bf16 f32 f64 c64 c128",
    "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
    "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
};

TEST(promotion_table) {
  for (int a = 0; a < kDTypes; ++a) {
    std::istringstream row(is_stored(DType(a)) ? "" : expected_promotions[a]);
    std::string cell;
    for (int b = 0; b < kDTypes; ++b) {
      const bool stored = is_stored(DType(a)) || is_stored(DType(b));
      if (!stored) row >> cell;
      const std::string expected = !stored ? cell : a == b ? name(DType(a)) : "-";
      CHECK_EQ(std::string(name(promote(DType(a), DType(b)).value_or(DType::none))),
               (expected == "-" ? std::string("none") : expected));
    }
  }
  CHECK(!promote(DType::none, DType::f32));
}

// "compute compute -> result" of a rule over value operands; "" where it throws TypeError.
std::string decided(const char* rule, std::vector<DType> in, DType given = DType::none) {
  Call c("op", "broadcast", rule);
  for (const DType t : in) c.x("x", {}, t);
  c.dtype(given);
  try {
    c.infer();
  } catch (const Error& e) {
    return e.kind == ErrorKind::type ? "" : "another error";
  }
  std::string text;
  for (size_t i = 0; i < in.size(); ++i) text += std::string(name(c.compute[i])) + " ";
  return text + "-> " + name(c.result[0]);
}

TEST(rules_over_one_operand) {
  struct Row {
    const char *rule, *results;  // in the order of DType; "-": TypeError
    bool computes_in_operand;    // or in the result
  };
  const Row rows[] = {
      {"same", "bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128", true},
      {"same_real", "- i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 - -", true},
      {"promote", "bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128", true},
      {"numeric", "- i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128", true},
      {"matmul", "- i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128", true},
      {"float", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128", false},
      {"integer", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - - - -", true},
      {"bit", "bool i8 i16 i32 i64 u8 u16 u32 u64 - - - - - - - -", true},
      {"logical", "bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool", false},
      {"compare", "bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool", true},
      {"predicate", "bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool bool", true},
      {"accum", "i64 i64 i64 i64 i64 u64 u64 u64 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128", false},
      {"index", "i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64", true},
      {"given", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32", true},
      {"scaled", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 - -", false},
      {"bits", "u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32 u32", true},
      {"int32", "i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32", true},
  };
  for (const Row& r : rows) {
    std::istringstream results(r.results);
    std::string cell;
    for (int t = 0; t < kDTypes && results >> cell; ++t) {
      const std::string compute = r.computes_in_operand ? name(DType(t)) : cell;
      const std::string expected = cell == "-" ? std::string() : compute + " -> " + cell;
      CHECK_EQ(r.rule + std::string(" ") + decided(r.rule, {DType(t)}), r.rule + std::string(" ") + expected);
    }
  }
}

TEST(rules_over_stored_dtypes) {
  for (const DType t : {DType::f8e8m0fnu, DType::i4}) {
    const std::string own = std::string(name(t)) + " -> " + name(t), to_float = "f32 -> f32";
    const bool has_addresses = !is_packed(t);
    for (const char* rule : {"same", "promote"}) CHECK_EQ(decided(rule, {t}), has_addresses ? own : std::string());
    CHECK_EQ(decided("compare", {t}), has_addresses ? std::string(name(t)) + " -> bool" : std::string());
    for (const char* rule : {"numeric", "matmul"}) CHECK_EQ(decided(rule, {t}), std::string());
    CHECK_EQ(decided("float", {t}), to_float);
    CHECK_EQ(decided("accum", {t}), has_addresses ? to_float : "i64 -> i64");
  }
}

TEST(rules_over_several_operands) {
  CHECK_EQ(decided("promote", {DType::i8, DType::u8}), "i16 i16 -> i16");
  CHECK_EQ(decided("promote", {DType::f16, DType::bf16, DType::i64}), "f32 f32 f32 -> f32");
  CHECK_EQ(decided("promote", {DType::u64, DType::i8}), "");
  CHECK_EQ(decided("numeric", {DType::b8, DType::i8}), "i8 i8 -> i8");
  CHECK_EQ(decided("numeric", {DType::b8, DType::b8}), "");
  CHECK_EQ(decided("float", {DType::i8, DType::i32}), "f32 f32 -> f32");
  CHECK_EQ(decided("float", {DType::f16, DType::i32}), "f16 f16 -> f16");
  CHECK_EQ(decided("compare", {DType::i8, DType::f64}), "f64 f64 -> bool");
  CHECK_EQ(decided("compare", {DType::i8, DType::u64}), "");
  CHECK_EQ(decided("same", {DType::f32, DType::i32}), "f32 f32 -> f32");
  CHECK_EQ(decided("same", {DType::i32, DType::f32}), "");
  CHECK_EQ(decided("bit", {DType::b8, DType::i16}), "i16 i16 -> i16");
  CHECK_EQ(decided("integer", {DType::b8, DType::b8}), "");
  CHECK_EQ(decided("accum", {DType::i8}, DType::f64), "f64 -> f64");
  CHECK_EQ(decided("given", {DType::i8}, DType::f16), "i8 -> f16");
  CHECK_EQ(decided("index", {DType::f32}, DType::i32), "f32 -> i32");
  CHECK_EQ(decided("quantize", {DType::f16, DType::f32}, DType::i8), "f32 f32 -> i8");
  CHECK_EQ(decided("quantize", {DType::i32, DType::b8}, DType::u8), "f32 f32 -> u8");
  CHECK_EQ(decided("quantize", {DType::f32}, DType::i16), "");
  CHECK_EQ(decided("quantize", {DType::f32}), "");
  CHECK_EQ(decided("quantize", {DType::c64}, DType::i8), "");
}

TEST(wider_products) {
  CHECK_EQ(decided("matmul", {DType::f16, DType::f16}, DType::f32), "f16 f16 -> f32");
  CHECK_EQ(decided("matmul", {DType::bf16, DType::bf16}, DType::f32), "bf16 bf16 -> f32");
  CHECK_EQ(decided("matmul", {DType::i8, DType::u8}, DType::i32), "i16 i16 -> i32");
  CHECK_EQ(decided("matmul", {DType::f64, DType::f32}, DType::f64), "f64 f64 -> f64");
  CHECK_EQ(decided("matmul", {DType::f32, DType::f32}, DType::f64), "");
  CHECK_EQ(decided("matmul", {DType::f32, DType::f32}, DType::f16), "");
  CHECK_EQ(decided("matmul", {DType::i8, DType::i8}, DType::f32), "");
  CHECK_EQ(decided("matmul", {DType::f16, DType::f16}, DType::i32), "");
}

TEST(a_second_output_of_floats) {
  const std::pair<DType, DType> seconds[] = {{DType::f16, DType::f32},
                                             {DType::bf16, DType::f32},
                                             {DType::f32, DType::f32},
                                             {DType::f64, DType::f64},
                                             {DType::i32, DType::f32}};
  for (const auto& [t, second] : seconds) {
    Call two("t.two", "same", "float");
    two.op.spec.n_out = 2;
    two.x("x", {2}, t).infer();
    CHECK_EQ(name(two.result[0]), std::string(name(t == DType::i32 ? DType::f32 : t)));
    CHECK_EQ(name(two.result[1]), std::string(name(second)));
  }
}

TEST(masks_indices_raw_and_absent_operands) {
  Call c("op", "same", "promote");
  c.x("m", {}, DType::b8, ParamKind::mask).x("i", {}, DType::u8, ParamKind::index);
  c.x("r", {}, DType::c64, ParamKind::raw).absent("a").x("x", {}, DType::i8).x("y", {}, DType::f16);
  c.infer();
  const Inference inv = c.inference();
  DType compute[kMaxInputs], result[kMaxOutputs];
  CHECK_EQ(rules::infer_dtypes(inv, compute, result), 0b110111u);
  std::string text;
  for (int i = 0; i < 6; ++i) text += std::string(name(compute[i])) + " ";
  CHECK_EQ(text + name(result[0]), "bool i64 c64 none f16 f16 f16");

  CHECK_FAILS(Call("where", "broadcast").x("condition", {2}, DType::i32, ParamKind::mask), type,
              "[where] condition is int32: expected bool; astype it");
  CHECK_FAILS(
      Call("take", "take", "same").x("x", {2}).x("indices", {2}, DType::f32, ParamKind::index).i64("axis", 0), type,
      "indices is float32: expected an integer dtype");
  CHECK_FAILS(Call("add", "broadcast").x("x1", {}, DType::u64).x("x2", {}, DType::i32), type,
              "[add] dtypes uint64 and int32 do not promote to a common one: astype one of them");
  CHECK_FAILS(Call("f", "from_shape", "promote").ints("shape", {1}), type,
              "[f] needs at least one array argument: got none; pass an array");
}

TEST(variadic_operands) {
  Call c("concat", "concat");
  c.variadic("arrays", {{1}, {2}, {3}, {1}, {2}, {3}, {1}, {2}, {3}, {4}}).i64("axis", 0);
  c.operands[9].set_type(DType::f64, nullptr);
  CHECK_SHAPE(c, "(22,)");
  for (const DType t : c.compute) CHECK(t == DType::f64);
  CHECK(c.result[0] == DType::f64);
  c.operands[0].set_type(DType::u64, nullptr), c.operands[1].set_type(DType::i64, nullptr);
  CHECK_FAILS(c, type, "dtypes uint64 and int64 (arrays[1]) do not promote");
}

std::string creation(dvt_attr value, DType given = DType::none) {
  Call c("full", "from_shape", "given");
  c.ints("shape", {2}).scalar("fill_value", value).dtype(given);
  c.infer();
  return name(c.result[0]);
}

TEST(given_follows_the_scalars_of_creation_ops) {
  static const double complex[] = {1, 2};
  CHECK_EQ(creation({DVT_A_I64, 1, {.i = 1}}), "i64");
  CHECK_EQ(creation({DVT_A_U64, 1, {.raw = ~0ull}}), "u64");
  CHECK_EQ(creation({DVT_A_F64, 1, {.f = 1}}), "f32");
  CHECK_EQ(creation({DVT_A_BOOL, 1, {.i = 1}}), "bool");
  CHECK_EQ(creation({DVT_A_F64S, 2, {.fs = complex}}), "c64");
  CHECK_EQ(creation({DVT_A_I64, 1, {.i = 1}}, DType::f16), "f16");
  Call zeros("zeros", "from_shape", "given");
  zeros.ints("shape", {2}).dtype(DType::none).infer();
  CHECK_EQ(name(zeros.result[0]), std::string("f32"));
  Call arange("arange", "arange", "given");
  arange.scalar("start", {DVT_A_I64, 1, {.i = 3}}).none("stop").scalar("step", {DVT_A_F64, 1, {.f = .5}});
  arange.dtype(DType::none);
  CHECK_SHAPE(arange, "(6,)");
  CHECK_EQ(name(arange.result[0]), std::string("f32"));
}

TEST(weak_scalars) {
  struct Row {
    const char *arrays, *with_bool, *with_int, *with_float, *with_complex;
  };
  const Row rows[] = {
      {"bool", "bool", "i64", "f32", "c64"},    {"i8", "i8", "i8", "f32", "c64"},
      {"u64", "u64", "u64", "f32", "c64"},      {"f16", "f16", "f16", "f16", "c64"},
      {"bf16", "bf16", "bf16", "bf16", "c64"},  {"f32", "f32", "f32", "f32", "c64"},
      {"f64", "f64", "f64", "f64", "c128"},     {"c64", "c64", "c64", "c64", "c64"},
      {"c128", "c128", "c128", "c128", "c128"},
  };
  for (const Row& r : rows) {
    const DType a = by_brief(r.arrays);
    CHECK_EQ(name(rules::weak_dtype(a, DType::b8)), std::string(r.with_bool));
    CHECK_EQ(name(rules::weak_dtype(a, DType::i64)), std::string(r.with_int));
    CHECK_EQ(name(rules::weak_dtype(a, DType::f32)), std::string(r.with_float));
    CHECK_EQ(name(rules::weak_dtype(a, DType::c64)), std::string(r.with_complex));
  }
  CHECK_EQ(name(rules::weak_dtype(DType::none, DType::i64)), std::string("i64"));
}

TEST(unknown_names) {
  CHECK_THROWS(Error, "there is no shape rule 'sane': expected one of same, broadcast", rules::shape_rule("sane"));
  CHECK_THROWS(Error, "there is no dtype rule 'flaot'", rules::dtype_rule("flaot"));
  CHECK_THROWS(Error, "there is no view 'add'", rules::view("add"));
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
