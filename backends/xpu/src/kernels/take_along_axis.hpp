// out[.., i, ..] = x[.., indices[.., i, ..], ..].
#include "kernels/common/lines.hpp"
#include "kernels/common/raise.hpp"
#include "kernels/common/slices.hpp"
#include "kernels/common/types.hpp"

namespace {
// The walk is over the output: operand 0 is x, which does not move along the axis by itself, operand 1 the indices.
template <class T>
void take_along_axis(const T* x, const int64_t* indices, T* out, const gpu::Slices& how, int64_t stride,
                     const gpu::Walk& from, gpu::Fault* fault) {
  gpu::for_each_item(how.n, [&](size_t i) {
    const gpu::Place place = gpu::locate(from.axis, 0, from.axes, i);
    int64_t index = indices[place.at[1]];
    if (!gpu::find_index(index, fault, how.call, how.axis, how.size)) return;
    out[i] = x[place.at[0] + index * stride];
  });
}
}  // namespace

#define TAKE_ALONG_AXIS(suffix, T)                                                                                 \
  KERNEL(1, take_along_axis_##suffix)(const T* x, const int64_t* indices, T* out, gpu::Slices how, int64_t stride, \
                                      gpu::Walk from, gpu::Fault* fault) {                                         \
    take_along_axis(x, indices, out, how, stride, from, fault);                                                    \
  }
DVT_SIZES(TAKE_ALONG_AXIS)
