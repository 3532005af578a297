// out[.., i, ..] = x[.., indices[.., i, ..], ..]. The iteration space is the output's: operand 0 is x, with stride
// 0 along the axis, operand 1 the indices.
#include "gpu/kernels/shared/slices.hpp"
#include "kernels/common/portable.hpp"

#define TAKE_ALONG_AXIS(suffix, T)                                                                               \
  GPU_KERNEL(1, take_along_axis_##suffix)                                                                        \
  (const T* x, const int64_t* indices, T* out, gpu::Slices how, int64_t stride, gpu::IterationSpace from,        \
   gpu::Fault* fault) {                                                                                          \
    gpu::for_each_item(how.n, [&](uint64_t i) {                                                                  \
      const gpu::Place place = gpu::locate(from.axis, 0, from.axes, i);                                          \
      int64_t index = indices[place.at[1]];                                                                      \
      if (gpu::find_index(index, fault, how.call, how.axis, how.size)) out[i] = x[place.at[0] + index * stride]; \
    });                                                                                                          \
  }
DVT_SIZES(TAKE_ALONG_AXIS)
