// The dtype rules, and the treatment of masks, indices, raw operands and Python scalars, which no rule changes.
#include <algorithm>

#include "rules/rules.hpp"

namespace dovetail::rules {
// ---- the rules: over the value operands ---------------------------------------------------------

static void decide(DTypeQuery& q, DType compute, DType result) {
  std::fill_n(q.compute, q.n_in, compute);
  std::fill_n(q.result, q.op.spec.n_out, result);
}

[[gnu::cold, noreturn]] static void no_promotion(const DTypeQuery& q, DType a, DType b) {
  q.fail(std::string("dtypes ") + info(a).name + " and " + info(b).name +
         " do not promote to a common one: astype one of them");
}

[[gnu::cold, noreturn]] static void wrong_dtype(const DTypeQuery& q, DType got, const char* expected) {
  q.fail(std::string("dtype ") + info(got).name + " is not supported: expected " + expected + "; astype it");
}

static DType common_or_none(const DTypeQuery& q) {
  DType t = DType::none;
  for (int i = 0; i < q.n_in; ++i) {
    if (q.in[i] == DType::none) continue;
    const auto both = t == DType::none ? q.in[i] : promote(t, q.in[i]);
    if (!both) no_promotion(q, t, q.in[i]);
    t = *both;
  }
  return t;
}

static DType common(const DTypeQuery& q) {
  const DType t = common_or_none(q);
  if (t == DType::none) q.fail("needs at least one array argument: got none; pass an array");
  return t;
}

void dtype_same(DTypeQuery& q) {
  const DType t = common(q);
  if (t != q.in[0] && q.in[0] != DType::none)
    q.fail(std::string("dtype ") + info(q.in[0]).name + " would become " + info(t).name +
           ": expected operands that keep it; astype one of them");
  decide(q, t, t);
}

void dtype_same_real(DTypeQuery& q) {
  dtype_same(q);
  const DType t = q.result[0];
  if (t == DType::b8 || is_complex(t)) wrong_dtype(q, t, "an integer or a real float");
}

// The dtype of a complex number's parts; others are their own.
static DType part(DType t) { return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t; }

void dtype_part(DTypeQuery& q) {
  dtype_same(q);
  q.result[0] = part(q.result[0]);
}

void dtype_same_and_index(DTypeQuery& q) {
  dtype_same(q);
  std::fill(q.result + 1, q.result + q.op.spec.n_out, DType::i64);
}

void dtype_promote(DTypeQuery& q) {
  const DType t = common(q);
  decide(q, t, t);
}

// Refuses bool: bindings/call.cpp runs add and multiply of bools as logical_or and logical_and.
void dtype_numeric(DTypeQuery& q) {
  dtype_promote(q);
  if (is_stored(q.result[0])) q.fail(storage_refusal(q.result[0]));
  if (q.result[0] == DType::b8)
    wrong_dtype(q, DType::b8, "numbers (logical_and, logical_or, logical_xor and logical_not are there for bool)");
}

// A wider result shows what the sums of products really are.
void dtype_matmul(DTypeQuery& q) {
  dtype_numeric(q);
  const DType t = q.result[0], wide = q.given;
  if (wide == DType::none || wide == t) return;
  const bool to_float = wide == DType::f32 && (t == DType::f16 || t == DType::bf16);
  const bool to_int = wide == DType::i32 && (t == DType::i8 || t == DType::u8 || t == DType::i16);
  if (!to_float && !to_int)
    q.fail(
        std::string("dtype=") + info(wide).name + " of " + info(t).name +
        " operands: expected their own, float32 of float16 or bfloat16, or int32 of int8, uint8 or int16; astype "
        "the operands");
  q.result[0] = wide;
}

static DType floating(DType t) { return (is_float(t) || is_complex(t)) && !is_stored(t) ? t : kDefaultFloat; }

// Further outputs stay float32 for fp16 and bf16: a logsumexp in their few digits would be useless.
void dtype_float(DTypeQuery& q) {
  const DType t = floating(common(q));
  decide(q, t, t);
  if (is_narrow_float(t)) std::fill(q.result + 1, q.result + q.op.spec.n_out, DType::f32);
}

void dtype_float_part(DTypeQuery& q) {
  dtype_float(q);
  q.result[0] = part(q.result[0]);
}

void dtype_floats(DTypeQuery& q) {
  const DType t = floating(common(q));
  decide(q, t, t);
}

void dtype_eigh(DTypeQuery& q) {
  dtype_floats(q);
  q.result[0] = part(q.result[0]);
}

void dtype_svd(DTypeQuery& q) {
  dtype_floats(q);
  q.result[1] = part(q.result[1]);
}

void dtype_integer(DTypeQuery& q) {
  const DType t = common(q);
  if (!is_integer(t)) wrong_dtype(q, t, "an integer");
  decide(q, t, t);
}

void dtype_bit(DTypeQuery& q) {
  const DType t = common(q);
  if (!is_integer(t) && t != DType::b8) wrong_dtype(q, t, "an integer or bool");
  decide(q, t, t);
}

void dtype_logical(DTypeQuery& q) { decide(q, DType::b8, DType::b8); }
void dtype_compare(DTypeQuery& q) { decide(q, common(q), DType::b8); }
void dtype_predicate(DTypeQuery& q) { decide(q, common(q), DType::b8); }

void dtype_accum(DTypeQuery& q) {
  DType t = common(q);
  if (q.given != DType::none) t = q.given;
  else if (is_stored(t) && is_float(t)) t = kDefaultFloat;
  else if (t == DType::b8 || info(t).kind == DKind::signed_int) t = DType::i64;
  else if (info(t).kind == DKind::unsigned_int) t = DType::u64;
  decide(q, t, t);
}

void dtype_index(DTypeQuery& q) { decide(q, common_or_none(q), q.given != DType::none ? q.given : DType::i64); }
void dtype_given(DTypeQuery& q) { decide(q, common_or_none(q), q.given != DType::none ? q.given : kDefaultFloat); }
void dtype_bits(DTypeQuery& q) { decide(q, common_or_none(q), DType::u32); }
void dtype_int32(DTypeQuery& q) { decide(q, common_or_none(q), DType::i32); }

// Each factor is converted independently of the other's dtype.
void dtype_scaled(DTypeQuery& q) {
  for (int i = 0; i < q.n_in; ++i)
    if (q.in[i] != DType::none && is_complex(q.in[i])) wrong_dtype(q, q.in[i], "a real number");
  const DType result = q.given == DType::none ? DType::f32 : q.given;
  if (!is_float(result)) wrong_dtype(q, result, "a real float");
  decide(q, result == DType::f64 ? DType::f64 : DType::f32, result);
}

void dtype_quantize(DTypeQuery& q) {
  const DType t = floating(common(q));
  if (is_complex(t)) wrong_dtype(q, t, "a real float");
  if (q.given == DType::none || !is_integer(q.given) || info(q.given).bits() > 8)
    q.fail(std::string("dtype ") + (q.given == DType::none ? "None" : info(q.given).name) +
           ": expected int8, uint8, int4, uint4, int2 or uint2; astype converts to others");
  decide(q, t, q.given);
}

// ---- around them --------------------------------------------------------------------------------

DType given_dtype(const Op& op, const Attrs& attrs) {
  if (op.dtype_attr < 0) return DType::none;
  if (attrs.given(op.dtype_attr)) return attrs.dtype(op.dtype_attr);
  if (op.n_in > 0) return DType::none;
  DType t = DType::none;
  int i = 0;
  for (const ParamSpec& p : op.spec.params) {
    if (is_operand(p.kind)) continue;
    const uint32_t kind = attrs.at[i++].kind;
    if (p.kind != ParamKind::scalar || kind == DVT_A_NONE) continue;
    const DType own = kind == DVT_A_F64S   ? DType::c64
                      : kind == DVT_A_F64  ? kDefaultFloat
                      : kind == DVT_A_BOOL ? DType::b8
                      : kind == DVT_A_U64  ? DType::u64
                                           : kDefaultInt;
    t = t == DType::none ? own : promote(t, own).value_or(kDefaultFloat);
  }
  return t;
}

DType weak_dtype(DType arrays, DType scalar) {
  if (arrays == DType::none) return scalar;
  switch (info(scalar).kind) {
    case DKind::boolean: return arrays;
    case DKind::signed_int:
    case DKind::unsigned_int: return arrays == DType::b8 ? kDefaultInt : arrays;
    case DKind::floating: return floating(arrays);
    case DKind::complex: return is_complex(arrays) ? arrays : arrays == DType::f64 ? DType::c128 : DType::c64;
  }
  return scalar;
}

DType dtype_of_numbers(const Op& op, DType promoted) { return op.dtype == dtype_scaled ? DType::f64 : promoted; }

static bool is_value(const Op& op, int i) {
  for (const ParamSpec& p : op.spec.params)
    if (is_operand(p.kind) && (p.variadic || i-- == 0)) return p.kind == ParamKind::value;
  return false;
}

DType promoted(const Inference& inv) {
  if (inv.n_in == 0 && inv.op.variadic) inv.fail("no arrays: expected at least one");
  DType t = DType::none;
  for (int i = 0; i < inv.n_in; ++i) {
    if (!inv.in[i] || !is_value(inv.op, i)) continue;
    const DType own = inv.in[i]->dtype;
    const auto both = t == DType::none ? own : promote(t, own);
    if (!both)
      inv.fail(ErrorKind::type, std::string("dtypes ") + info(t).name + " and " + info(own).name + " (" +
                                    operand_name(inv, i) + ") do not promote to a common one: astype one of them");
    t = *both;
  }
  return t;
}

static DType compute_dtype(const Inference& inv, int i, ParamKind kind) {
  const DType t = inv.in[i]->dtype;
  if (kind == ParamKind::mask && t != DType::b8)
    inv.fail(ErrorKind::type,
             operand_name(inv, i) + " is " + info(t).name + ": expected bool; astype it, or compare");
  if (kind == ParamKind::index && !is_integer(t))
    inv.fail(ErrorKind::type,
             operand_name(inv, i) + " is " + info(t).name + ": expected an integer dtype; astype it");
  return kind == ParamKind::index ? DType::i64 : t;
}

// Others see elements in memory, each at an address of its own.
static bool takes_packed(const Op& op) {
  return op.spec.flags & op_stored_decomposition || op.spec.shape == "reinterpret";
}

uint64_t infer_dtypes(const Inference& inv, DType* compute, DType* result) {
  const Op& op = inv.op;
  DType values[kMaxInputs], decided[kMaxInputs];
  int at[kMaxInputs], n_values = 0, i = 0;
  uint64_t given = 0;
  std::fill_n(compute, kMaxInputs, DType::none);
  for (const ParamSpec& p : op.spec.params) {
    if (!is_operand(p.kind)) continue;
    const bool here = inv.has(i);
    given |= uint64_t{here} << i;
    if (p.kind == ParamKind::value) {
      values[n_values] = p.variadic ? promoted(inv) : here ? inv.in[i]->dtype : DType::none;
      at[n_values++] = i;
    } else if (here) {
      compute[i] = compute_dtype(inv, i, p.kind);
    }
    ++i;
  }
  DTypeQuery query{op, n_values, values, given_dtype(op, inv.attrs), decided, result};
  op.dtype(query);
  for (int v = 0; v < n_values; ++v) {
    if (values[v] == DType::none) continue;
    if (is_packed(decided[v]) && !takes_packed(op)) [[unlikely]]
      query.fail(storage_refusal(decided[v]));
    compute[at[v]] = decided[v];
  }
  if (op.variadic) std::fill(compute + op.n_in - 1, compute + kMaxInputs, compute[op.n_in - 1]);
  return given;
}
}  // namespace dovetail::rules
