// Functions that shape rules share: attributes by name, axes, broadcasting, and error messages.
#include <algorithm>
#include <bit>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
void DTypeQuery::fail(const std::string& why) const {
  throw Error(ErrorKind::type, "[" + op.spec.name + "] " + why);
}

void Inference::fail(ErrorKind kind, const std::string& why) const {
  throw Error(kind, "[" + op.spec.name + "] " + why);
}

TensorType& Inference::output(int i, std::span<const int64_t> shape) {
  TensorType& t = *out[i];
  t.dtype = result[i];
  try {
    t.set_shape(shape);
  } catch (const Error& e) {
    fail(e.kind, e.what());
  }
  return t;
}

uint64_t infer(const Op& op, const TensorType* const* in, int n_in, Attrs& attrs, TensorType* const* out) {
  DType compute[kMaxInputs], result[kMaxOutputs];
  Inference call{op, in, n_in, attrs, compute, result, out};
  rules::infer_dtypes(call, compute, result);
  call.infer_shapes();
  return call.work;
}
}  // namespace dovetail

namespace dovetail::rules {
// ---- attributes ---------------------------------------------------------------------------------

int find_attr(const Inference& inv, std::string_view name) {
  int i = 0;
  for (const ParamSpec& p : inv.op.spec.params) {
    if (is_operand(p.kind)) continue;
    if (p.name == name) return i;
    ++i;
  }
  return -1;
}

[[gnu::cold, noreturn]] static void missing_attr(const Inference& inv, std::string_view name) {
  inv.fail(ErrorKind::runtime, "the op's shape rule '" + inv.op.spec.shape + "' expects an attribute '" +
                                   std::string(name) + "': declare it");
}

int attr(const Inference& inv, std::string_view name) {
  const int i = find_attr(inv, name);
  if (i < 0) [[unlikely]]
    missing_attr(inv, name);
  return i;
}

int axis_attr(const Inference& inv) {
  const int i = inv.op.axis_attr;
  if (i < 0) [[unlikely]]
    missing_attr(inv, "axis");
  return i;
}

static const std::string& attr_name(const Inference& inv, int attr) {
  for (const ParamSpec& p : inv.op.spec.params)
    if (!is_operand(p.kind) && attr-- == 0) return p.name;
  return inv.op.spec.name;
}

[[gnu::cold, noreturn]] static void wrong_kind(const Inference& inv, int attr, const char* expected) {
  const std::string got = inv.attrs.given(attr) ? "another type" : "None";
  inv.fail(ErrorKind::type, attr_name(inv, attr) + ": expected " + expected + ", got " + got);
}

[[gnu::cold, noreturn]] static void too_small(const Inference& inv, int attr, int64_t least, int64_t got) {
  inv.fail(attr_name(inv, attr) + ": expected at least " + std::to_string(least) + ", got " + std::to_string(got));
}

int64_t integer(const Inference& inv, int attr, int64_t least) {
  const dvt_attr& a = inv.attrs.at[attr];
  if (a.kind != DVT_A_I64) [[unlikely]]
    wrong_kind(inv, attr, "an int");
  if (a.v.i < least) [[unlikely]]
    too_small(inv, attr, least, a.v.i);
  return a.v.i;
}

bool flag(const Inference& inv, std::string_view name) {
  const auto& params = inv.op.spec.params;
  if (!params.empty() && params.back().name == name)
    return inv.attrs.boolean(inv.op.n_attr - 1);  // usually the last attribute
  const int i = find_attr(inv, name);
  return i >= 0 && inv.attrs.boolean(i);
}

std::span<int64_t> ints(Inference& inv, int attr) {
  Attrs& attrs = inv.attrs;
  dvt_attr& a = attrs.at[attr];
  if (a.kind == DVT_A_I64) attrs.set_ints(attr, {&a.v.i, 1});
  if (a.kind != DVT_A_I64S) [[unlikely]]
    wrong_kind(inv, attr, "an int or a sequence of ints");
  const bool own = a.v.is >= attrs.ints && a.v.is < attrs.ints + attrs.n_ints;
  if (!own && a.count) {
    if (a.count > 2 * DVT_MAX_NDIM) [[unlikely]]
      inv.fail(attr_name(inv, attr) + " has " + std::to_string(a.count) + " values: expected at most " +
               std::to_string(2 * DVT_MAX_NDIM));
    attrs.set_ints(attr, attrs.i64s(attr));
  }
  return {const_cast<int64_t*>(a.v.is), a.count};  // it points into attrs.ints, which is not const
}

std::span<int64_t> ints(Inference& inv, int attr, int n, int64_t least) {
  std::span<int64_t> values = ints(inv, attr);
  if (values.size() == 1 && n != 1) {
    int64_t repeated[2 * DVT_MAX_NDIM];
    std::fill_n(repeated, n, values[0]);
    inv.attrs.set_ints(attr, {repeated, size_t(n)});
    values = ints(inv, attr);
  }
  if (values.size() != size_t(n)) [[unlikely]]
    inv.fail(attr_name(inv, attr) + " " + to_string(values) + ": expected " + (n == 1 ? "" : "one int or ") +
             std::to_string(n) + (n == 1 ? " int" : " ints") + ", got " + std::to_string(values.size()));
  for (const int64_t v : values)
    if (v < least) [[unlikely]]
      too_small(inv, attr, least, v);
  return values;
}

void set_i64(Inference& inv, int attr, int64_t value) { inv.attrs.at[attr] = {DVT_A_I64, 1, {.i = value}}; }
void set_f64(Inference& inv, int attr, double value) { inv.attrs.at[attr] = {DVT_A_F64, 1, {.f = value}}; }

// ---- operands -----------------------------------------------------------------------------------

std::string operand_name(const Op& op, int i) {
  int at = 0;
  for (const ParamSpec& p : op.spec.params) {
    if (!is_operand(p.kind)) continue;
    if (p.variadic) return p.name + "[" + std::to_string(i - at) + "]";
    if (at++ == i) return p.name;
  }
  return "operand " + std::to_string(i);
}

std::string described(const Op& op, int i, std::span<const int64_t> shape) {
  return operand_name(op, i) + " of shape " + to_string(shape);
}

void expect_rank(const Inference& inv, int i, int least, int most) {
  const int rank = inv.operand(i).rank();
  if (rank >= least && rank <= most) [[likely]]
    return;
  const std::string count = least == most          ? std::to_string(least)
                            : most == DVT_MAX_NDIM ? "at least " + std::to_string(least)
                                                   : std::to_string(least) + " to " + std::to_string(most);
  inv.fail(described(inv, i) + " has " + std::to_string(rank) + (rank == 1 ? " axis" : " axes") + ": expected " +
           count);
}

void expect_shape(const Inference& inv, int i, std::span<const int64_t> shape, std::string_view why) {
  const TensorType& t = inv.operand(i);
  if (!std::ranges::equal(t.shape(), shape)) [[unlikely]]
    inv.fail(described(inv, i) + " does not fit: expected shape " + to_string(shape) + ", " + std::string(why));
}

void expect_key(const Inference& inv, int i) {
  if (const DType t = inv.operand(i).dtype; t != DType::u32)
    inv.fail(ErrorKind::type,
             operand_name(inv, i) + " is " + info(t).name + ": expected uint32, as dovetail.random.key() gives it");
  const int64_t words[] = {4};
  expect_shape(inv, i, words, "a key's");
}

// ---- axes ---------------------------------------------------------------------------------------

[[gnu::cold, noreturn]] static void bad_axis(const Inference& inv, int64_t value, int rank, int i) {
  std::string whose;
  if (inv.has(i)) {
    const bool own = inv.operand(i).rank() == rank;
    whose = (own ? " for " : " for the result from ") + described(inv, i);
  }
  if (rank == 0)
    inv.fail(ErrorKind::axis, "axis " + std::to_string(value) + " is out of range: expected no axis" + whose);
  inv.fail(ErrorKind::axis, "axis " + std::to_string(value) + " is out of range: expected " +
                                std::to_string(-rank) + " to " + std::to_string(rank - 1) + whose);
}

[[gnu::cold, noreturn]] static void axis_twice(const Inference& inv, int attr, int axis) {
  inv.fail(attr_name(inv, attr) + " " + to_string(inv.attrs.i64s(attr)) + " names axis " + std::to_string(axis) +
           " twice: expected each axis once");
}

int axis(const Inference& inv, int64_t value, int rank, int i) {
  if (value < -rank || value >= rank) [[unlikely]]
    bad_axis(inv, value, rank, i);
  return int(value < 0 ? value + rank : value);
}

int single_axis(Inference& inv) {
  const int a = axis_attr(inv);
  const int at = axis(inv, integer(inv, a), inv.operand(0).rank());
  set_i64(inv, a, at);
  return at;
}

uint32_t axes(Inference& inv, int attr, int rank) {
  if (!inv.attrs.given(attr)) {
    int64_t all[2 * DVT_MAX_NDIM];
    for (int i = 0; i < rank; ++i) all[i] = i;
    inv.attrs.set_ints(attr, {all, size_t(rank)});
    return (uint32_t{1} << rank) - 1;
  }
  const std::span<int64_t> values = ints(inv, attr);
  uint32_t mask = 0;
  for (const int64_t v : values) {
    const uint32_t bit = uint32_t{1} << axis(inv, v, rank);
    if (mask & bit) [[unlikely]]
      axis_twice(inv, attr, std::countr_zero(bit));
    mask |= bit;
  }
  uint32_t left = mask;
  for (int64_t& v : values) {
    v = std::countr_zero(left);
    left &= left - 1;
  }
  return mask;
}
}  // namespace dovetail::rules
