// Products of matrices of any strides: for what cuBLASLt has no algorithm for.
#include "kernels/common/product.hpp"
#include "kernels/common/tile.cuh"

namespace {
using namespace gpu;

// The tile of a block, by its number among those of all matrices.
struct Place {
  uint64_t matrix, row, column;

  __device__ Place(const Product& p, int tile) {
    const uint64_t across = (p.n + tile - 1) / tile, down = (p.m + tile - 1) / tile, all = blockIdx.x / across;
    matrix = all / down, row = all % down * tile, column = blockIdx.x % across * tile;
  }
};

template <class T>
__device__ void matmul(const T* a, const T* b, const T* bias, T* c, const Product& p) {
  using C = Sum<T>;
  constexpr int lines = product_tile(8 * sizeof(T)), each = lines / side;
  __shared__ Tile<C, lines> a_tile, b_tile;
  const int ty = int(threadIdx.x) / side, tx = int(threadIdx.x) % side;
  const Place at(p, lines);
  uint64_t rest = at.matrix;
  for (int axis = int(p.axes) - 1; axis >= 0; --axis) {
    const int64_t i = int64_t(rest % uint64_t(p.batch[axis]));
    a += i * p.a_batch[axis], b += i * p.b_batch[axis], rest /= uint64_t(p.batch[axis]);
  }
  const Vectors<T> rows{a, p.m, p.k, p.a_row, p.a_column}, columns{b, p.n, p.k, p.b_column, p.b_row};
  C sums[each][each];
  for (int i = 0; i < each * each; ++i) sums[i / each][i % each] = C(0);
  for (uint64_t k = 0; k < p.k; k += tile_depth) {
    fill(a_tile, rows, at.row, k, ty, tx), fill(b_tile, columns, at.column, k, ty, tx);
    __syncthreads();
    add_products(sums, a_tile, b_tile, ty, tx);
    __syncthreads();
  }
  c += at.matrix * p.m * p.n;
#pragma unroll
  for (int j = 0; j < each; ++j) {
    const uint64_t x = at.column + uint64_t(tx + side * j);
    if (x >= p.n) continue;
    const C shift = bias ? C(Compute<T>(bias[x])) : no_shift<C>();
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const uint64_t y = at.row + uint64_t(ty + side * i);
      if (y < p.m) c[y * p.n + x] = T(sums[i][j] + shift);
    }
  }
}
}  // namespace

#define MATMUL(suffix, T)      \
  KERNEL(256, matmul_##suffix) \
  (const T* a, const T* b, const T* bias, T* c, gpu::Product p) { matmul(a, b, bias, c, p); }
DVT_UNSIGNED(MATMUL)
DVT_FLOATS(MATMUL)
GPU_COMPLEX(MATMUL)
