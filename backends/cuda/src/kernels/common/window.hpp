// Windows that slide over images: convolution and pooling. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
// One spatial axis; where there is only one, the other has a size and a window of 1.
struct WindowAxis {
  int64_t in, stride, out;  // sizes of the input and of the output, the input's stride
  int64_t size, step, padding, dilation;

  constexpr int64_t place(int64_t o, int64_t tap) const { return o * step - padding + tap * dilation; }
  constexpr bool holds(int64_t place) const { return uint64_t(place) < uint64_t(in); }
};

// Channels of images and what slides over them. The output has no gaps.
struct Windows {
  int64_t images, channels;
  int64_t image_stride, channel_stride;
  WindowAxis h, w;
};
}  // namespace gpu
