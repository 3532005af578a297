// Products of matrices of any strides: what oneDNN has no implementation for.
#include "kernels/common/product.hpp"
#include "kernels/common/tile.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;
constexpr int depth = 16;

template <class T>
void matmul(const T* a, const T* b, const T* bias, T* c, const gpu::Product& p) {
  using C = gpu::Sum<T>;
  constexpr gpu::TileOfProduct tile = gpu::tile_of_product(8 * sizeof(T), !std::is_integral_v<T>);
  constexpr int rows = tile.rows / gpu::side, columns = tile.columns / gpu::side;  // of each item
  static syclex::work_group_static<C[tile.rows][depth]> a_memory;
  static syclex::work_group_static<C[depth][tile.columns]> b_memory;
  const gpu::ByLine<C, tile.rows, depth> a_tile{a_memory};
  const gpu::ByElement<C, tile.columns, depth> b_tile{b_memory};
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  const auto group = item.get_group();
  const size_t ty = item.get_local_id(1), tx = item.get_local_id(2);
  const uint64_t matrix = group.get_group_id(0), row = group.get_group_id(1) * tile.rows,
                 column = group.get_group_id(2) * tile.columns;
  uint64_t rest = matrix;
  for (int axis = int(p.axes) - 1; axis >= 0; --axis) {
    const int64_t at = int64_t(rest % uint64_t(p.batch[axis]));
    a += at * p.a_batch[axis], b += at * p.b_batch[axis], rest /= uint64_t(p.batch[axis]);
  }
  const gpu::Vectors<T> a_rows{a, p.m, p.k, p.a_row, p.a_column}, b_columns{b, p.n, p.k, p.b_column, p.b_row};
  C sums[rows][columns] = {};
  for (uint64_t k = 0; k < p.k; k += depth) {
    gpu::fill(a_tile, a_rows, row, k, ty, tx);
    gpu::fill(b_tile, b_columns, column, k, ty, tx);
    sycl::group_barrier(group);
    gpu::add_products(sums, a_tile, b_tile, ty, tx);
    sycl::group_barrier(group);
  }
  c += matrix * p.m * p.n;
#pragma unroll
  for (int j = 0; j < columns; ++j) {
    const uint64_t x = column + (tx + size_t(gpu::side * j));
    if (x >= p.n) continue;
    const C shift = bias ? C(gpu::Compute<T>(bias[x])) : -C(0);
    T* to = c + (row + ty * rows) * p.n + x;
#pragma unroll
    for (int i = 0; i < rows; ++i, to += p.n)
      if (row + ty * rows + size_t(i) < p.m) *to = T(sums[i][j] + shift);
  }
}
}  // namespace

#define MATMUL(suffix, T)                                                                   \
  KERNEL(3, matmul_##suffix)(const T* a, const T* b, const T* bias, T* c, gpu::Product p) { \
    matmul(a, b, bias, c, p);                                                               \
  }
DVT_UNSIGNED(MATMUL)
DVT_FLOATS(MATMUL)
