#include "graph/algebra.hpp"

#include <algorithm>
#include <cmath>

#include "types/scalar.hpp"

namespace dovetail {
namespace {
// Plain floats, of which promotion says whether a cast keeps every value.
bool is_plain_float(DType t) { return t == DType::f16 || t == DType::bf16 || t == DType::f32 || t == DType::f64; }
bool keeps_values(DType from, DType to) {
  return is_plain_float(from) && is_plain_float(to) && promote(from, to) == to;
}

// Which axis of the operand each axis of the result is, if the op only moves axes; else nothing.
std::vector<int64_t> axes_of(const Algebra::Call& call, int rank) {
  static const Op &permute = op("permute_dims"), &transpose = op("matrix_transpose");
  std::vector<int64_t> axes;
  if (call.op == &permute) {
    const std::span<const int64_t> given = call.attrs.i64s(0);
    axes.assign(given.begin(), given.end());
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  } else if (call.op == &transpose) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    std::swap(axes[size_t(rank) - 2], axes[size_t(rank) - 1]);
  }
  return axes;
}

// The product of the sizes of a reshape, beside one that is left open.
std::pair<int64_t, bool> elements_of(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t size : shape)
    if (size >= 0 && __builtin_mul_overflow(product, size, &product)) return {0, false};
  return {product, std::ranges::count(shape, -1) > 0};
}

bool is_involution(const Op& o) {
  static const Op* const all[] = {&op("negative"), &op("bitwise_invert"), &op("matrix_transpose")};
  return std::ranges::count(all, &o);
}
bool is_idempotent(const Op& o) {
  static const Op* const all[] = {&op("abs"), &op("floor"), &op("ceil"), &op("trunc"), &op("relu")};
  return std::ranges::count(all, &o);
}
}  // namespace

const Algebra::Call* Algebra::maker(int value, const Op& op) const {
  const auto found = calls_.find(value);
  return found != calls_.end() && found->second.op == &op ? &found->second : nullptr;
}

bool Algebra::is_scalar(int value, double wanted) const {
  const auto found = constants_.find(value);
  if (found == constants_.end() || is_complex(found->second.dtype)) return false;
  const auto x = cast_scalar(found->second, DType::f64).read<double>();
  return x == wanted && std::signbit(x) == std::signbit(wanted);
}

// Both take the same operand: does `outer` raise for all sizes for which `inner` does? They are right for those of
// the trace.
bool Algebra::covers(const Call& outer, const Call& inner) const {
  static const Op &reshape = op("reshape"), &broadcast = op("broadcast_to");
  if ((outer.op != &reshape && outer.op != &broadcast) || outer.op != inner.op) return false;
  const std::span<const int64_t> after = outer.attrs.i64s(0), before = inner.attrs.i64s(0);
  if (outer.op == &reshape) {
    const auto [n, open] = elements_of(after);
    const auto [n_inner, open_inner] = elements_of(before);
    return n > 0 && n_inner > 0 && (!open || (open_inner && n % n_inner == 0));
  }
  const auto rank = size_t(type_(inner.in[0]).rank());
  return std::ranges::equal(before.last(rank), after.last(rank));
}

bool Algebra::simplify(Call& call, std::set<int>* covered) const {
  static const Op &astype = op("astype"), &permute = op("permute_dims");
  const auto found = call.in.empty() ? calls_.end() : calls_.find(call.in[0]);
  if (found == calls_.end()) return false;
  const Call& inner = found->second;
  if (call.op == &astype && inner.op == &astype) {
    if (!is_plain_float(call.attrs.dtype(0))) return false;
    if (!keeps_values(type_(inner.in[0]).dtype, type_(call.in[0]).dtype)) return false;
    call.in[0] = inner.in[0];
    return true;
  }
  if (covered && covers(call, inner)) {
    covered->insert(call.in[0]);
    call.in[0] = inner.in[0];
    return true;
  }
  const int rank = type_(call.in[0]).rank();
  const std::vector<int64_t> first = axes_of(inner, rank);
  std::vector<int64_t> axes = axes_of(call, rank);
  if (first.empty() || axes.empty()) return false;
  for (int64_t& axis : axes) axis = first[size_t(axis)];
  call.op = &permute;
  call.attrs = Attrs();
  call.attrs.set_ints(0, axes);
  call.in[0] = inner.in[0];
  return true;
}

// x * 1, x / 1, x - 0, x + -0, and of integers x + 0. The scalar has no axes, so the shape is that of x.
int Algebra::without_identity(const Call& call, DType result) const {
  static const Op &add = op("add"), &subtract = op("subtract"), &multiply = op("multiply"), &divide = op("divide");
  if (call.in.size() != 2 || is_complex(result) || result == DType::b8) return -1;
  const auto gives = [&](int x, int scalar, double identity) {
    return type_(call.in[size_t(x)]).dtype == result && is_scalar(call.in[size_t(scalar)], identity);
  };
  const double zero = is_float(result) ? -0.0 : 0.0;
  if (call.op == &multiply) return gives(0, 1, 1) ? call.in[0] : gives(1, 0, 1) ? call.in[1] : -1;
  if (call.op == &add) return gives(0, 1, zero) ? call.in[0] : gives(1, 0, zero) ? call.in[1] : -1;
  if (call.op == &divide) return gives(0, 1, 1) ? call.in[0] : -1;
  return call.op == &subtract && gives(0, 1, 0.0) ? call.in[0] : -1;
}

// What a condition without axes selects, where the other one has none either: else it might not fit.
int Algebra::chosen_by_constant(const Call& call, DType result) const {
  const bool holds = is_scalar(call.in[0], 1);
  if (!holds && !is_scalar(call.in[0], 0)) return -1;
  const int chosen = call.in[holds ? 1 : 2], other = call.in[holds ? 2 : 1];
  return type_(chosen).dtype == result && type_(other).rank() == 0 ? chosen : -1;
}

int Algebra::value_of(const Call& call, DType result) const {
  static const Op &astype = op("astype"), &permute = op("permute_dims"), &where = op("where");
  if (call.op == &where) return chosen_by_constant(call, result);
  if (call.op == &astype) return type_(call.in[0]).dtype == result ? call.in[0] : -1;
  if (call.op == &permute) {
    const std::vector<int64_t> axes = axes_of(call, type_(call.in[0]).rank());
    return std::ranges::is_sorted(axes) ? call.in[0] : -1;
  }
  if (is_involution(*call.op)) {
    const Call* const inner = maker(call.in[0], *call.op);
    return inner ? inner->in[0] : -1;
  }
  if (is_idempotent(*call.op)) return maker(call.in[0], *call.op) ? call.in[0] : -1;
  return without_identity(call, result);
}
}  // namespace dovetail
