// A compact row in the registers of its threads: it is read once, whatever is done with it.
#pragma once
#include "kernels/common/pack.hpp"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// The packs of one thread, a row of threads apart. `packed`: both operands are, of every row
// (is_packed of row_grids.hpp); else a pack may have elements behind the row's end, which are `missing`.
template <class T>
class RegisterRow {
 public:
  static constexpr int n = pack_length<T>, packs = register_packs(sizeof(T));

  __device__ __forceinline__ RegisterRow(const Row& team, const Part& row, const T* from, bool packed,
                                         Compute<T> missing)
      : first_(team.lane * n), step_(team.width * n), size_(uint32_t(row.end)), packed_(packed) {
    if (packed) read<true>(from, missing);
    else read<false>(from, missing);
  }

  // body(x) for the elements that the row has, and perhaps missing ones; it may change them.
  template <class Body>
  __device__ __forceinline__ void for_each(Body body) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const uint32_t i = first_ + k * step_;
      if (i >= size_) break;
#pragma unroll
      for (int j = 0; j < n; ++j) body(x_[k][j]);
    }
  }

  // Writes f(x).
  template <class F>
  __device__ __forceinline__ void store(T* to, F f) const {
    store(to, [&](Compute<T> x, Compute<T>, Compute<T>) { return f(x); }, nullptr, nullptr, 0, 0);
  }
  // Writes f(x, a, b), with what the row has at the same place of a and b, or their defaults without them.
  template <class F>
  __device__ __forceinline__ void store(T* to, F f, const T* a, const T* b, float a_missing,
                                        float b_missing) const {
    if (packed_) write<true>(to, f, a, b, a_missing, b_missing);
    else write<false>(to, f, a, b, a_missing, b_missing);
  }

 private:
  // Whether it is packed is known where memory is read and written: there it costs registers.
  template <bool packed>
  __device__ __forceinline__ void read(const T* from, Compute<T> missing) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const Pack<T, n> pack = load_pack<n>(from, first_ + k * step_, size_, packed, T(missing));
#pragma unroll
      for (int j = 0; j < n; ++j) x_[k][j] = Compute<T>(pack.at[j]);
    }
  }
  template <bool packed, class F>
  __device__ __forceinline__ void write(T* to, F f, const T* a, const T* b, float a_missing,
                                        float b_missing) const {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const uint32_t i = first_ + k * step_;
      if (i >= size_) break;
      const Pack<T, n> with_a = at<packed>(a, i, a_missing), with_b = at<packed>(b, i, b_missing);
      Pack<T, n> pack;
#pragma unroll
      for (int j = 0; j < n; ++j) pack.at[j] = T(f(x_[k][j], Compute<T>(with_a.at[j]), Compute<T>(with_b.at[j])));
      store_pack<n>(to, pack, i, size_, packed);
    }
  }
  template <bool packed>
  __device__ __forceinline__ Pack<T, n> at(const T* from, uint32_t i, float missing) const {
    if (from) return load_pack<n>(from, i, size_, packed);
    Pack<T, n> pack;
#pragma unroll
    for (int j = 0; j < n; ++j) pack.at[j] = T(missing);
    return pack;
  }

  Compute<T> x_[packs][n];
  uint32_t first_, step_, size_;
  bool packed_;
};
}  // namespace gpu
#endif
