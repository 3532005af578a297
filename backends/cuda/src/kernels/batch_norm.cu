// Each channel with the mean and variance that are given, elementwise.
#include "kernels/common/channels.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Compute;

template <class T>
struct Normal {
  Compute<T> mean, scale, weight, bias;
};

// The parameters of the channels; a missing weight is 1 and a missing bias -0, which change nothing.
template <class T>
struct Normals {
  const T *mean, *variance, *weight, *bias;
  Compute<T> eps;

  __device__ __forceinline__ Normal<T> operator()(uint64_t channel) const {
    using C = Compute<T>;
    return {C(mean[channel]), 1 / gpu::math::sqrt(C(variance[channel]) + eps), weight ? C(weight[channel]) : C(1),
            bias ? C(bias[channel]) : C(-0.0f)};
  }
};
}  // namespace
#endif

#define BATCH_NORM(suffix, T)                                                                               \
  KERNEL(256, batch_norm_##suffix)                                                                          \
  (const T* x, const T* mean, const T* variance, const T* weight, const T* bias, T* out, gpu::Channels how, \
   gpu::Compute<T> eps) {                                                                                   \
    gpu::for_each_by_channel<gpu::pack_length<T>>(                                                          \
        x, out, how, Normals<T>{mean, variance, weight, bias, eps}, [](T element, const Normal<T>& by) {    \
          return T((gpu::Compute<T>(element) - by.mean) * by.scale * by.weight + by.bias);                  \
        });                                                                                                 \
  }
DVT_FLOATS(BATCH_NORM)
