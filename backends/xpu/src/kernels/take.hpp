// The slices along one axis that indices name.
#include "kernels/common/raise.hpp"
#include "kernels/common/slices.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T>
void take(const T* x, const int64_t* indices, T* out, const xpu::Slices& how, xpu::Fault* fault) {
  xpu::for_each_item(how.n, [&](size_t i) {
    const uint64_t slice = i / how.inner, outer = slice / how.count;
    int64_t index = indices[slice - outer * how.count];
    if (!xpu::find_index(index, fault, how.call, how.axis, how.size)) return;
    out[i] = x[(outer * uint64_t(how.size) + uint64_t(index)) * how.inner + (i - slice * how.inner)];
  });
}
}  // namespace

#define TAKE(suffix, T)                                                                                      \
  KERNEL(1, take_##suffix)(const T* x, const int64_t* indices, T* out, xpu::Slices how, xpu::Fault* fault) { \
    take(x, indices, out, how, fault);                                                                       \
  }
XPU_SIZES(TAKE)
