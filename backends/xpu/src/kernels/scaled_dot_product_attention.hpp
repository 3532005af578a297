// A group takes 64 queries of one head and loops over blocks of 64 keys with a running maximum and sum of each
// query (Dao et al., FlashAttention, 2022): no more than a block of scores exists, in local memory.
#include <utility>

#include "dovetail/math.hpp"
#include "kernels/common/attention.hpp"
#include "kernels/common/tile.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;
constexpr int block = 64, each = block / gpu::side;
constexpr float least = -dvt::math::infinity<float>;

// A score with its mask, which hides NaN too.
inline float masked(float score, const void* mask, uint32_t kind, int64_t at) {
  switch (kind) {
    case gpu::mask_bool: return static_cast<const uint8_t*>(mask)[at] ? score : least;
    case gpu::mask_f16: return score + float(static_cast<const gpu::half*>(mask)[at]);
    case gpu::mask_bf16: return score + float(static_cast<const gpu::bf16*>(mask)[at]);
    default: return score + static_cast<const float*>(mask)[at];
  }
}

// The number that exponents are relative to: the maximum, or 0 where it is infinite.
inline float origin(float top) { return top - top == 0 ? top : 0.0f; }

// The first element of a matrix in each operand. Every index is a constant: an argument that is indexed otherwise
// is copied for each work item.
struct Begin {
  int64_t q = 0, k = 0, v = 0, mask = 0;

  template <int... axis>
  [[gnu::always_inline]] Begin(const gpu::Attention& p, uint64_t matrix, std::integer_sequence<int, axis...>) {
    const auto add = [&](uint32_t size, uint32_t heads_per_key, int64_t q_stride, int64_t k_stride,
                         int64_t v_stride, int64_t mask_stride) {
      const uint64_t rest = matrix / size;
      const auto n = int64_t(matrix - rest * size), shared = n / heads_per_key;
      q += n * q_stride, k += shared * k_stride, v += shared * v_stride, mask += n * mask_stride;
      matrix = rest;
      return true;
    };
    (void)((uint32_t(axis) < p.axes && add(p.batch[axis], axis == 0 ? p.heads_per_key : 1, p.q.batch[axis],
                                           p.k.batch[axis], p.v.batch[axis], p.mask.batch[axis])) &&
           ...);
  }
};

// Scores and results lie with queries along tx: so every operand but q, which stays, is filled without transposing
// it. The tiles of size and values are of at most `width` columns; more of them come in several steps, or groups.
template <class T, int width>
void attend(const T* q, const T* k, const T* v, const void* mask, T* out, const gpu::Attention& p) {
  constexpr int rows = width / gpu::side;
  static syclex::work_group_static<float[width][block]> q_memory;
  static syclex::work_group_static<float[block][width]> v_memory;
  static syclex::work_group_static<float[block][block]> shared_memory;  // keys, then weights
  auto& key_memory = reinterpret_cast<float (&)[block][width]>(static_cast<float (&)[block][block]>(shared_memory));
  static syclex::work_group_static<float[gpu::side][block]> part_memory;
  const gpu::ByElement<float, block, width> q_tile{q_memory};
  const gpu::ByLine<float, block, width> k_tile{key_memory};
  const gpu::ByElement<float, block, block> weights{shared_memory};
  const gpu::ByElement<float, width, block> v_tile{v_memory};
  float (&parts)[gpu::side][block] = part_memory;  // of each query's maximum or sum
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  const auto group = item.get_group();
  const size_t ty = item.get_local_id(1), tx = item.get_local_id(2), t = ty * gpu::side + tx;
  const uint64_t matrix = group.get_group_id(0), first = group.get_group_id(1) * block,
                 value = group.get_group_id(2) * width;
  const Begin begin(p, matrix, std::make_integer_sequence<int, gpu::most_attention_axes>());
  q += begin.q, k += begin.k, v += begin.v;
  const gpu::Vectors<T> q_rows{q, p.queries, p.size, p.q.row, p.q.column},
      k_rows{k, p.keys, p.size, p.k.row, p.k.column}, v_columns{v, p.value_size, p.keys, p.v.column, p.v.row};

  float top[each], sum[each] = {}, result[rows][each] = {};  // of the queries tx + side * j
#pragma unroll
  for (int j = 0; j < each; ++j) top[j] = least;
  const uint64_t end = p.causal ? sycl::min(p.keys, first + block) : p.keys;
  for (uint64_t key = 0; key < end; key += block) {
    float score[each][each] = {};  // of the keys ty * each + i
    for (uint64_t e = 0; e < p.size; e += width) {
      if (key == 0 || p.size > width) gpu::fill(q_tile, q_rows, first, e, ty, tx);
      gpu::fill(k_tile, k_rows, key, e, ty, tx);
      sycl::group_barrier(group);
      gpu::add_products(score, k_tile, q_tile, ty, tx);
      sycl::group_barrier(group);
    }
    gpu::fill(v_tile, v_columns, value, key, ty, tx);
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const uint64_t row = sycl::min(first + (tx + size_t(gpu::side * j)), p.queries - 1);  // no more are stored
      const uint64_t last = p.causal ? sycl::min(row, p.keys - 1) : p.keys - 1;
      const size_t seen = last < key ? 0 : sycl::min(last - key + 1, uint64_t(block));
      const int64_t mask_row = begin.mask + int64_t(row) * p.mask.row + int64_t(key) * p.mask.column;
      float most = least;
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const size_t at = ty * each + size_t(i);
        float x = score[i][j] * p.scale;
        if (p.mask_kind != gpu::mask_none)
          x = masked(x, mask, p.mask_kind, mask_row + int64_t(at < seen ? at : 0) * p.mask.column);
        score[i][j] = at < seen ? x : least;
        most = sycl::fmax(most, score[i][j]);
      }
      parts[ty][tx + size_t(gpu::side * j)] = most;
    }
    sycl::group_barrier(group);
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const size_t query = tx + size_t(gpu::side * j);
      float most = top[j];
#pragma unroll
      for (int y = 0; y < gpu::side; ++y) most = sycl::fmax(most, parts[y][query]);
      const float before = origin(top[j]), now = origin(most);
      const float factor = top[j] == least ? 0.0f : dvt::math::exp(before - now);
      top[j] = most, sum[j] *= factor;
#pragma unroll
      for (int i = 0; i < rows; ++i) result[i][j] *= factor;
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const float weight = dvt::math::exp(score[i][j] - now);
        sum[j] += weight, weights.at(query, ty * each + size_t(i)) = weight;
      }
    }
    sycl::group_barrier(group);
    gpu::add_products(result, v_tile, weights, ty, tx);
    sycl::group_barrier(group);
  }

#pragma unroll
  for (int j = 0; j < each; ++j) parts[ty][tx + size_t(gpu::side * j)] = sum[j];
  sycl::group_barrier(group);
#pragma unroll
  for (int j = 0; j < each; ++j) {
    const size_t query = tx + size_t(gpu::side * j);
    float total = 0;
#pragma unroll
    for (int y = 0; y < gpu::side; ++y) total += parts[y][query];
    const uint64_t row = first + query;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const uint64_t column = value + (ty * rows + size_t(i));
      if (row < p.queries && column < p.value_size)  // a query that sees no key: 0
        out[(matrix * p.queries + row) * p.value_size + column] = T(total == 0 ? 0.0f : result[i][j] / total);
    }
  }
}
}  // namespace

#define ATTENTION(suffix, T, width)                                                                     \
  KERNEL(3, attention_##suffix##_##width)(const T* q, const T* k, const T* v, const void* mask, T* out, \
                                          gpu::Attention p) {                                           \
    attend<T, width>(q, k, v, mask, out, p);                                                            \
  }
#define ATTENTIONS(suffix, T) ATTENTION(suffix, T, 32) ATTENTION(suffix, T, 64)
// A function that is called gets its struct in memory of each work item, and what is read from there is not known
// to be the same for all items: neither are then the addresses.
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
ATTENTIONS(f16, gpu::half)
ATTENTIONS(bf16, gpu::bf16)
ATTENTIONS(f32, float)
#pragma clang attribute pop
