// Floats as integers of 8 bits and back: of both signs, which differ in their bounds, by one kernel.
#include "kernels/common/channels.cuh"
#include "kernels/common/quantization.hpp"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Compute;

template <class T>
struct Scale {
  Compute<T> step, zero_point;
};

// The scales of the channels; nullptr: those of the call.
template <class T>
struct Scales {
  const T* scale;
  const int64_t* zero_point;
  const gpu::Quantization& how;

  __device__ __forceinline__ Scale<T> operator()(uint64_t channel) const {
    T step;
    if (scale) step = scale[channel];
    else memcpy(&step, &how.scale, sizeof step);
    const int64_t zero = zero_point ? zero_point[how.zero_points == 1 ? 0 : channel] : how.zero_point;
    return {Compute<T>(step), Compute<T>(zero)};
  }
};

template <class T>
__device__ __forceinline__ uint8_t quantize(T x, const Scale<T>& scale, int32_t sign) {
  const auto least = Compute<T>(-sign), most = Compute<T>(255 - sign);
  const Compute<T> quotient = gpu::math::round(Compute<T>(x) / scale.step);
  const Compute<T> q = (quotient == quotient ? quotient : 0) + scale.zero_point;
  return uint8_t(int(q < least ? least : q > most ? most : q));
}
template <class T>
__device__ __forceinline__ T dequantize(uint8_t x, const Scale<T>& scale, int32_t sign) {
  return T((Compute<T>((x ^ sign) - sign) - scale.zero_point) * scale.step);
}
}  // namespace
#endif

#define QUANTIZE(suffix, T)                                                                                   \
  KERNEL(256, quantize_##suffix)                                                                              \
  (const T* x, const T* scale, const int64_t* zero_point, uint8_t* out, gpu::Channels channels,               \
   gpu::Quantization how) {                                                                                   \
    gpu::for_each_by_channel<gpu::pack_length<T>>(                                                            \
        x, out, channels, Scales<T>{scale, zero_point, how},                                                  \
        [sign = how.sign](T element, const Scale<T>& by) { return quantize<T>(element, by, sign); });         \
  }                                                                                                           \
  KERNEL(256, dequantize_##suffix)                                                                            \
  (const uint8_t* x, const T* scale, const int64_t* zero_point, T* out, gpu::Channels channels,               \
   gpu::Quantization how) {                                                                                   \
    gpu::for_each_by_channel<gpu::pack_length<T>>(                                                            \
        x, out, channels, Scales<T>{scale, zero_point, how},                                                  \
        [sign = how.sign](uint8_t element, const Scale<T>& by) { return dequantize<T>(element, by, sign); }); \
  }
DVT_FLOATS(QUANTIZE)
