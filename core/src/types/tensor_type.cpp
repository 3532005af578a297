#include "types/tensor_type.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "error.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
// More elements than this and the bytes of the widest type, or a stride, could leave 63 bits.
constexpr int64_t kMaxElements = int64_t{1} << 58;

[[noreturn, gnu::cold]] void bad_shape(std::span<const int64_t> shape) {
  std::string why = "shape " + to_string(shape);
  if (shape.size() > DVT_MAX_NDIM) {
    why += " has " + std::to_string(shape.size()) + " axes: expected at most " + std::to_string(DVT_MAX_NDIM);
    throw Error(ErrorKind::value, why);
  }
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0)
      throw Error(ErrorKind::value, why + " has a negative size: expected axis " + std::to_string(i) +
                                        " to be at least 0, got " + std::to_string(shape[i]));
  throw Error(ErrorKind::value, why + " is too large: expected at most 2^58 elements, axes of size 0 not counted");
}
}  // namespace

void TensorType::set_shape(std::span<const int64_t> shape) {
  const size_t rank = shape.size();
  if (rank > DVT_MAX_NDIM) [[unlikely]]
    bad_shape(shape);
  int64_t step = 1;
  bool empty = false, bad = false;
  for (size_t i = rank; i-- > 0;) {
    const int64_t n = shape[i];
    int64_t next;
    bad |= n < 0 || __builtin_mul_overflow(step, n ? n : 1, &next) || next > kMaxElements;
    if (bad) [[unlikely]]
      bad_shape(shape);
    empty |= n == 0;
    dims[i] = n, dims[DVT_MAX_NDIM + i] = step;
    step = next;
  }
  ndim = int32_t(rank);
  numel = empty ? 0 : uint64_t(step);
  dense = true;
}

void TensorType::update_dense() {
  uint64_t elements = 1, step = 1;
  bool row_major = true;
  for (int i = rank(); i-- > 0;) {
    const auto n = uint64_t(size(i));
    elements *= n;
    if (n == 1) continue;  // its stride is never used
    row_major &= uint64_t(stride(i)) == step;
    step *= n;
  }
  numel = elements;
  dense = row_major || elements == 0;
}

bool broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b, int64_t* out, int* rank) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t lead = a.size() - b.size();
  int64_t merged[DVT_MAX_NDIM];
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t n = a[i], m = i < lead ? 1 : b[i - lead];
    if (n != m && n != 1 && m != 1) return false;
    merged[i] = n == 1 ? m : n;
  }
  *rank = int(a.size());
  std::copy_n(merged, a.size(), out);
  return true;
}

bool broadcasts_to(std::span<const int64_t> from, std::span<const int64_t> to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[lead + i]) return false;
  return true;
}
}  // namespace dovetail
