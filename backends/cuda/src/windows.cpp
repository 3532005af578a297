#include "windows.hpp"

namespace gpu {
Windows plan_windows(const dvt_call* c, const int64_t* size, dvt::Ints step, dvt::Ints padding,
                     dvt::Ints dilation) {
  const DLTensor &x = *c->in[0], &y = *c->out[0];
  const auto axis = [&](uint32_t i) {
    const uint32_t at = i + 2;
    return WindowAxis{
        x.shape[at], x.strides[at], y.shape[at], size[i], step[i], padding[i], dilation.data ? dilation[i] : 1};
  };
  const bool flat = x.ndim == 3;
  Windows how{x.shape[0], x.shape[1], x.strides[0], x.strides[1], {}, axis(flat ? 0 : 1)};
  how.h = flat ? WindowAxis{1, how.w.in * how.w.stride, 1, 1, 1, 0, 1} : axis(0);
  return how;
}
}  // namespace gpu
