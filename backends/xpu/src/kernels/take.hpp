// The slices along one axis that indices name.
#include "gpu/kernels/shared/slices.hpp"
#include "kernels/common/raise.hpp"
#include "kernels/common/rows.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T>
void take(const T* x, const int64_t* indices, T* out, const gpu::Slices& how, gpu::Fault* fault) {
  const uint64_t slices = gpu::quotient(how.n, how.inner);
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
  const size_t slice_step = item.get_global_range(0), element_step = item.get_global_range(1);
  for (uint64_t slice = item.get_global_id(0); slice < slices; slice += slice_step) {
    const uint64_t outer = gpu::quotient(slice, how.count);
    int64_t index = indices[slice - outer * how.count];
    if (!gpu::find_index(index, fault, how.call, how.axis, how.size)) continue;
    const T* const from = x + (outer * uint64_t(how.size) + uint64_t(index)) * how.inner;
    T* const to = out + slice * how.inner;
    for (size_t i = item.get_global_id(1); i < how.inner; i += element_step) to[i] = from[i];
  }
}
}  // namespace

#define TAKE(suffix, T)                                                                                      \
  KERNEL(2, take_##suffix)(const T* x, const int64_t* indices, T* out, gpu::Slices how, gpu::Fault* fault) { \
    take(x, indices, out, how, fault);                                                                       \
  }
DVT_SIZES(TAKE)
