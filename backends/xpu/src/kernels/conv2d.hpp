// Convolutions as products of matrices: a group's weights (outputs, taps) times the windows of x (taps, places).
// For what oneDNN has no implementation for.
#include "dovetail/layout.hpp"
#include "kernels/common/tile.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;
constexpr int block = 64, depth = gpu::side, each = block / gpu::side;

// The range: groups of all images, blocks of a group's outputs, blocks of places.
template <class T>
void convolve(const T* x, const T* weight, const T* bias, T* out, const dvt::Windows& how, uint32_t groups,
              uint64_t outputs) {
  using C = gpu::Sum<T>;
  static syclex::work_group_static<C[block][depth]> a_memory;
  static syclex::work_group_static<C[depth][block]> b_memory;
  const gpu::ByLine<C, block, depth> a_tile{a_memory};
  const gpu::ByElement<C, block, depth> b_tile{b_memory};
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  const auto work_group = item.get_group();
  const size_t ty = item.get_local_id(1), tx = item.get_local_id(2);
  const uint64_t all = work_group.get_group_id(0), image = all / groups, group = all - image * groups,
                 row = work_group.get_group_id(1) * block, column = work_group.get_group_id(2) * block;
  const auto channels = uint64_t(how.channels) / groups, places = uint64_t(how.h.out * how.w.out),
             taps = channels * uint64_t(how.h.size * how.w.size);
  x += int64_t(image) * how.image_stride + int64_t(group * channels) * how.channel_stride;
  const gpu::Vectors<T> rows{weight + group * outputs * taps, outputs, taps, int64_t(taps), 1};
  const gpu::Corners<each, gpu::side> corners(how, int64_t(column + tx));
  C sums[each][each] = {};
  for (uint64_t k = 0; k < taps; k += depth) {
    gpu::fill(a_tile, rows, row, k, ty, tx);
    corners.for_each(x, how, k + ty, taps, [&](int j, bool inside, const T* from) {
      C& element = b_tile.to[ty][tx + size_t(gpu::side * j)];
      element = C(0);
      if (inside) element = C(gpu::Compute<T>(*from));
    });
    sycl::group_barrier(work_group);
    gpu::add_products(sums, a_tile, b_tile, ty, tx);
    sycl::group_barrier(work_group);
  }
#pragma unroll
  for (int i = 0; i < each; ++i)
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const uint64_t o = row + ty * each + size_t(i), place = column + tx + size_t(gpu::side * j);
      if (o >= outputs || place >= places) continue;
      const C sum = bias ? sums[i][j] + C(gpu::Compute<T>(bias[group * outputs + o])) : sums[i][j];
      out[(all * outputs + o) * places + place] = T(sum);
    }
}
}  // namespace

#define CONVOLUTION(suffix, T)                                                                                \
  KERNEL(3, convolution_##suffix)                                                                             \
  (const T* x, const T* weight, const T* bias, T* out, dvt::Windows how, uint32_t groups, uint64_t outputs) { \
    convolve(x, weight, bias, out, how, groups, outputs);                                                     \
  }
DVT_UNSIGNED(CONVOLUTION)
DVT_FLOATS(CONVOLUTION)
