// Results in memory that the caller gives.
#include <algorithm>

#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
std::pair<uintptr_t, uintptr_t> extent(const Tensor& t) {
  int64_t last = 0;
  for (int i = 0; i < t.rank(); ++i) last += (t.size(i) - 1) * t.stride(i);
  const auto begin = reinterpret_cast<uintptr_t>(t.view.data);
  return {begin, begin + (t.numel ? uint64_t(last + 1) * info(t.dtype).bytes() : 0)};
}

// Each axis steps over all that the axes of smaller strides reach.
bool places_each_once(const Tensor& t) {
  if (t.dense) return true;
  int axes[DVT_MAX_NDIM], n = 0;
  for (int i = 0; i < t.rank(); ++i)
    if (t.size(i) > 1) axes[n++] = i;
  std::sort(axes, axes + n, [&](int a, int b) { return t.stride(a) < t.stride(b); });
  int64_t reached = 1;
  for (int i = 0; i < n; ++i) {
    if (t.stride(axes[i]) < reached) return false;
    reached += (t.size(axes[i]) - 1) * t.stride(axes[i]);
  }
  return true;
}

// The same elements in the same memory.
bool is_same(const Tensor& a, const Tensor& b) {
  if (a.storage != b.storage || a.view.data != b.view.data || a.dtype != b.dtype || !a.same_shape(b)) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) return false;
  return true;
}

void check(const std::string& which, const Tensor& given, const TensorType& result, const Device& device) {
  const auto fail = [&](const std::string& why) { throw Error(ErrorKind::value, which + " is given " + why); };
  if (given.dtype != result.dtype)
    throw Error(ErrorKind::type,
                which + " is given as " + info(given.dtype).name + ": expected " + info(result.dtype).name);
  if (!given.same_shape(result))
    fail("with shape " + to_string(given.shape()) + ": expected " + to_string(result.shape()));
  if (given.device != &device)
    fail("on " + (given.device ? given.device->name : "the host") + ": expected " + device.name);
  const int item = info(given.dtype).bytes();
  if (given.numel &&
      reinterpret_cast<uintptr_t>(given.view.data) % uintptr_t(is_complex(given.dtype) ? item / 2 : item))
    fail("at an address that is no multiple of an element's size");
  if (given.numel && !places_each_once(given))
    fail("with strides " + to_string(given.strides()) + " for shape " + to_string(given.shape()) +
         ": expected strides that place each element once");
}
}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  if (!a.device || !b.device || a.device != b.device) return false;
  const auto x = extent(a), y = extent(b);
  return x.first < y.second && y.first < x.second;
}

void check_given(const std::string& what, const Tensor* const* given, const TensorType* const* results, size_t n,
                 const Device& device) {
  for (size_t i = 0; i < n; ++i)
    if (given[i])
      check("[" + what + "] " + (n > 1 ? "result " + std::to_string(i) : "the result"), *given[i], *results[i],
            device);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < i; ++k)
      if (given[i] && given[k] && overlap(*given[i], *given[k]))
        throw Error(ErrorKind::value, "[" + what + "] results " + std::to_string(k) + " and " + std::to_string(i) +
                                          " are given in memory that overlaps");
}

void put_in_given(Tensor* const* results, const Tensor* const* given, size_t n, Device& device) {
  // A result may be a view of an operand that a given result overlaps: all are read before the first is written.
  for (size_t i = 0; i < n; ++i) {
    Tensor& made = *results[i];
    if (!made.device) made = materialise(made, device);
    if (given[i] && is_same(made, *given[i])) continue;
    if (std::any_of(given, given + n, [&](const Tensor* t) { return t && overlap(made, *t); }))
      made = compact(made);
  }
  for (size_t i = 0; i < n; ++i) {
    if (!given[i]) continue;
    Tensor to = *given[i];
    if (!is_same(*results[i], to)) copy_into(to, *results[i]);
    *results[i] = std::move(to);
  }
}

void run_into(Invocation& inv, const Tensor* const* given) {
  const uint32_t n = inv.op.spec.n_out;
  const TensorType* types[kMaxOutputs];
  std::copy_n(inv.out, n, types);
  check_given(inv.op.spec.name, given, types, n, *inv.device);
  inv.given = given;
  inv.run();
  inv.given = nullptr;
  put_in_given(inv.out, given, n, *inv.device);
}
}  // namespace dovetail
