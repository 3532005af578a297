// Elementwise kernels with parameters for each channel.
#pragma once
#include "kernels/common/axes.hpp"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// The channel of an element, then of those that follow it: a thread looks no further than a pack at once.
class Channel {
 public:
  uint64_t at;

  __device__ __forceinline__ Channel(const Channels& how, uint64_t i) : how_(how) {
    const uint64_t passed = quotient(i, how.inner);
    at = passed - quotient(passed, how.count) * how.count.value;
    left_ = few((passed + 1) * how.inner.value - i);
  }
  // Goes on to the next element; is its channel another one?
  __device__ __forceinline__ bool next() {
    if (--left_) return false;
    at = at + 1 == how_.count.value ? 0 : at + 1;
    left_ = few(how_.inner.value);
    return true;
  }

 private:
  static __device__ __forceinline__ uint32_t few(uint64_t left) {
    return left < pack_bytes ? uint32_t(left) : pack_bytes;
  }

  const Channels& how_;
  uint32_t left_;
};

// out[i] = f(x[i], parameters_of(channel of i)), n elements at once.
template <int n, class Out, class In, class ParametersOf, class F>
__device__ __forceinline__ void for_each_by_channel(const In* x, Out* out, const Channels& how,
                                                    ParametersOf parameters_of, F f) {
  const bool aligned = is_aligned(x) && is_aligned(out);
  for_each_item((how.n + n - 1) / n, [&](uint64_t pack) {
    const uint64_t begin = pack * n;
    const Pack<In, n> from = load_pack<n>(x, begin, how.n, aligned);
    Pack<Out, n> to;
    Channel channel(how, begin);
    auto parameters = parameters_of(channel.at);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      to.at[j] = f(from.at[j], parameters);
      if (j + 1 < n && channel.next()) parameters = parameters_of(channel.at);
    }
    store_pack(out, to, begin, how.n, aligned);
  });
}
}  // namespace gpu
#endif
