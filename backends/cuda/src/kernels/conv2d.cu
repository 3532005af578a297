// Convolutions as products of matrices: a group's weights (outputs, taps) times the windows of x (taps, places).
// For what cuDNN has no engine for.
#include "dovetail/layout.hpp"
#include "kernels/common/tile.cuh"

namespace {
using namespace gpu;

constexpr int block = 32, each = block / side;

// A block of threads for each group of each image, block of its outputs, and block of places, which are the
// innermost.
template <class T>
__device__ void convolve(const T* x, const T* weight, const T* bias, T* out, const dvt::Windows& how,
                         uint32_t groups, uint64_t outputs) {
  using C = Sum<T>;
  __shared__ Tile<C, block> a_tile, b_tile;
  const int ty = int(threadIdx.x) / side, tx = int(threadIdx.x) % side;
  const auto channels = uint64_t(how.channels) / groups, places = uint64_t(how.h.out * how.w.out),
             taps = channels * uint64_t(how.h.size * how.w.size);
  const uint64_t across = (places + block - 1) / block, down = (outputs + block - 1) / block,
                 line = blockIdx.x / across, all = line / down, image = all / groups, group = all - image * groups,
                 row = line % down * block, column = blockIdx.x % across * block;
  x += int64_t(image) * how.image_stride + int64_t(group * channels) * how.channel_stride;
  const Vectors<T> rows{weight + group * outputs * taps, outputs, taps, int64_t(taps), 1};
  const Corners<each, side> corners(how, int64_t(column) + tx);
  C sums[each][each];
  for (int i = 0; i < each * each; ++i) sums[i / each][i % each] = C(0);
  for (uint64_t k = 0; k < taps; k += tile_depth) {
    fill(a_tile, rows, row, k, ty, tx);
    corners.for_each(x, how, k + uint64_t(ty), taps, [&](int j, bool inside, const T* from) {
      b_tile.at[ty][tx + side * j] = inside ? C(Compute<T>(*from)) : C(0);
    });
    __syncthreads();
    add_products(sums, a_tile, b_tile, ty, tx);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < each; ++i)
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const uint64_t o = row + uint64_t(ty + side * i), place = column + uint64_t(tx + side * j);
      if (o >= outputs || place >= places) continue;
      const C shift = bias ? C(Compute<T>(bias[group * outputs + o])) : no_shift<C>();
      out[(all * outputs + o) * places + place] = T(sums[i][j] + shift);
    }
}
}  // namespace

#define CONVOLUTION(suffix, T)                                                                                \
  KERNEL(256, convolution_##suffix)                                                                           \
  (const T* x, const T* weight, const T* bias, T* out, dvt::Windows how, uint32_t groups, uint64_t outputs) { \
    convolve(x, weight, bias, out, how, groups, outputs);                                                     \
  }
DVT_UNSIGNED(CONVOLUTION)
DVT_FLOATS(CONVOLUTION)
