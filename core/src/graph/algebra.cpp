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

std::vector<int64_t> axes_of(const Attrs& attrs, int rank) {
  const std::span<const int64_t> given = attrs.i64s(0);
  std::vector<int64_t> axes(given.begin(), given.end());
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  return axes;
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

bool Algebra::simplify(Call& call) const {
  static const Op &astype = op("astype"), &permute = op("permute_dims");
  if (call.op == &astype) {
    const Call* const inner = maker(call.in[0], astype);
    if (!inner || !is_plain_float(call.attrs.dtype(0))) return false;
    if (!keeps_values(type_(inner->in[0]).dtype, type_(call.in[0]).dtype)) return false;
    call.in[0] = inner->in[0];
    return true;
  }
  if (call.op == &permute) {
    const Call* const inner = maker(call.in[0], permute);
    if (!inner) return false;
    const int rank = type_(call.in[0]).rank();
    const std::vector<int64_t> first = axes_of(inner->attrs, rank);
    std::vector<int64_t> axes = axes_of(call.attrs, rank);
    for (int64_t& axis : axes) axis = first[size_t(axis)];
    call.attrs = Attrs();
    call.attrs.set_ints(0, axes);
    call.in[0] = inner->in[0];
    return true;
  }
  return false;
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

int Algebra::value_of(const Call& call, DType result) const {
  static const Op &astype = op("astype"), &permute = op("permute_dims");
  if (call.op == &astype) return type_(call.in[0]).dtype == result ? call.in[0] : -1;
  if (call.op == &permute) {
    const std::vector<int64_t> axes = axes_of(call.attrs, type_(call.in[0]).rank());
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
