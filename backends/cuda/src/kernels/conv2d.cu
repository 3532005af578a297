// Convolutions as products of matrices: a group's weights (outputs, taps) times the windows of x (taps, places).
// For what cuDNN has no engine for.
#include "dovetail/layout.hpp"
#include "kernels/common/tile.cuh"

namespace {
using namespace gpu;

constexpr int block = 32, each = block / side;

// The first element of the windows of a thread's columns of the tile.
struct Corners {
  int64_t y[each], x[each];

  __device__ Corners(const dvt::Windows& how, uint64_t first, int tx) {
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const auto place = int64_t(first) + tx + side * j, i = place / how.w.out;
      y[j] = i < how.h.out ? how.h.place(i, 0) : how.h.in + how.h.size * how.h.dilation;  // beyond: nowhere
      x[j] = how.w.place(place - i * how.w.out, 0);
    }
  }
};

// Tap number `tap` (channel, row, column of the weight) of the windows, 0 beyond the image.
template <class C, class T>
__device__ void fill_windows(Tile<C, block>& to, const T* image, const dvt::Windows& how, const Corners& at,
                             uint64_t tap, uint64_t taps, int ty, int tx) {
  const auto line = int64_t(tap) / how.w.size, channel = line / how.h.size;
  const int64_t down = (line - channel * how.h.size) * how.h.dilation,
                right = (int64_t(tap) - line * how.w.size) * how.w.dilation;
  const T* const from = image + channel * how.channel_stride;
#pragma unroll
  for (int j = 0; j < each; ++j) {
    const int64_t y = at.y[j] + down, x = at.x[j] + right;
    const bool inside = tap < taps && how.h.holds(y) && how.w.holds(x);
    to.at[ty][tx + side * j] = inside ? C(Compute<T>(from[y * how.h.stride + x * how.w.stride])) : C(0);
  }
}

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
  const Corners corners(how, column, tx);
  C sums[each][each];
  for (int i = 0; i < each * each; ++i) sums[i / each][i % each] = C(0);
  for (uint64_t k = 0; k < taps; k += tile_depth) {
    fill(a_tile, rows, row, k, ty, tx), fill_windows(b_tile, x, how, corners, k + uint64_t(ty), taps, ty, tx);
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
