// A group takes 64 queries of one head and walks over blocks of 64 keys with a running maximum and sum of each
// query (Dao et al., FlashAttention, 2022): no more than a block of scores exists, in local memory.
#include "kernels/common/attention.hpp"
#include "kernels/common/math.hpp"
#include "kernels/common/tile.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;
constexpr int block = 64, depth = 32, each = block / xpu::side;
constexpr float least = -xpu::math::infinity<float>;

// What the mask says of one score; hidden ones are -inf, NaN even.
inline float masked(float score, const void* mask, uint32_t kind, int64_t at) {
  switch (kind) {
    case xpu::mask_bool: return static_cast<const uint8_t*>(mask)[at] ? score : least;
    case xpu::mask_f16: return score + float(static_cast<const xpu::half*>(mask)[at]);
    case xpu::mask_bf16: return score + float(static_cast<const xpu::bf16*>(mask)[at]);
    case xpu::mask_f32: return score + static_cast<const float*>(mask)[at];
    default: return score;
  }
}

// What exponents are taken relative to: the maximum, or 0 where it is infinite.
inline float origin(float top) { return top - top == 0 ? top : 0.0f; }

template <class T, int values>
void attend(const T* q, const T* k, const T* v, const void* mask, T* out, const xpu::Attention& p) {
  constexpr int columns = values / xpu::side;
  static syclex::work_group_static<float[depth][block]> q_memory, k_memory;
  static syclex::work_group_static<float[block][values]> v_memory;
  static syclex::work_group_static<float[block][block]> weight_memory;
  static syclex::work_group_static<float[xpu::side][block]> part_memory;
  float (&q_tile)[depth][block] = q_memory;
  float (&k_tile)[depth][block] = k_memory;
  float (&v_tile)[block][values] = v_memory;
  float (&weights)[block][block] = weight_memory;  // [key][query]
  float (&parts)[xpu::side][block] = part_memory;  // of a reduction over keys
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  const auto group = item.get_group();
  const int ty = int(item.get_local_id(1)), tx = int(item.get_local_id(2)), t = ty * xpu::side + tx;
  const uint64_t matrix = group.get_group_id(0), first = group.get_group_id(1) * block,
                 value = group.get_group_id(2) * values;
  int64_t mask_at = 0;
  uint64_t rest = matrix;
  for (int axis = int(p.axes) - 1; axis >= 0; --axis) {
    const int64_t n = int64_t(rest % p.batch[axis]), shared = axis + 1 == int(p.axes) ? n / p.heads_per_key : n;
    q += n * p.q.batch[axis], k += shared * p.k.batch[axis], v += shared * p.v.batch[axis];
    mask_at += n * p.mask.batch[axis], rest /= p.batch[axis];
  }
  const xpu::Lines<T> q_rows{q, p.queries, p.size, p.q.row, p.q.column},
      k_rows{k, p.keys, p.size, p.k.row, p.k.column}, v_columns{v, p.value_size, p.keys, p.v.column, p.v.row};

  float top[each], sum[each] = {}, result[each][columns] = {};
  for (int i = 0; i < each; ++i) top[i] = least;
  const uint64_t end = p.causal ? sycl::min(p.keys, first + block) : p.keys;
  for (uint64_t key = 0; key < end; key += block) {
    float score[each][each] = {};
    for (uint64_t e = 0; e < p.size; e += depth) {
      if (key == 0 || p.size > depth) xpu::fill(q_tile, q_rows, first, e, t);
      xpu::fill(k_tile, k_rows, key, e, t);
      sycl::group_barrier(group);
      xpu::add_products(score, q_tile, k_tile, ty, tx);
      sycl::group_barrier(group);
    }
    for (int i = 0; i < each; ++i) {
      const uint64_t row = first + uint64_t(ty * each + i);
      float most = least;
      for (int j = 0; j < each; ++j) {
        const uint64_t at = key + uint64_t(tx + xpu::side * j);
        const bool hidden = at >= p.keys || row >= p.queries || (p.causal && at > row);
        score[i][j] = hidden ? least
                             : masked(score[i][j] * p.scale, mask, p.mask_kind,
                                      mask_at + int64_t(row) * p.mask.row + int64_t(at) * p.mask.column);
        most = sycl::fmax(most, score[i][j]);
      }
      parts[tx][ty * each + i] = most;
    }
    xpu::fill(v_tile, v_columns, value, key, t);
    sycl::group_barrier(group);
    for (int i = 0; i < each; ++i) {
      float most = top[i];
      for (int x = 0; x < xpu::side; ++x) most = sycl::fmax(most, parts[x][ty * each + i]);
      const float before = origin(top[i]), now = origin(most);
      const float factor = top[i] == least ? 0.0f : before == now ? 1.0f : xpu::math::exp(before - now);
      top[i] = most, sum[i] *= factor;
      for (int j = 0; j < columns; ++j) result[i][j] *= factor;
      for (int j = 0; j < each; ++j) {
        const float weight = xpu::math::exp(score[i][j] - now);
        sum[i] += weight, weights[tx + xpu::side * j][ty * each + i] = weight;
      }
    }
    sycl::group_barrier(group);
    xpu::add_products(result, weights, v_tile, ty, tx);
    sycl::group_barrier(group);
  }

  for (int i = 0; i < each; ++i) parts[tx][ty * each + i] = sum[i];
  sycl::group_barrier(group);
  for (int i = 0; i < each; ++i) {
    float total = 0;
    for (int x = 0; x < xpu::side; ++x) total += parts[x][ty * each + i];
    const uint64_t row = first + uint64_t(ty * each + i);
    for (int j = 0; j < columns; ++j) {
      const uint64_t column = value + uint64_t(tx + xpu::side * j);
      if (row < p.queries && column < p.value_size)  // a row that is masked everywhere: 0
        out[(matrix * p.queries + row) * p.value_size + column] = T(total == 0 ? 0.0f : result[i][j] / total);
    }
  }
}
}  // namespace

#define ATTENTION(suffix, T, values)                                                                     \
  KERNEL(3, attention_##suffix##_##values)(const T* q, const T* k, const T* v, const void* mask, T* out, \
                                           xpu::Attention p) {                                           \
    attend<T, values>(q, k, v, mask, out, p);                                                            \
  }
#define ATTENTIONS(suffix, T) ATTENTION(suffix, T, 32) ATTENTION(suffix, T, 64)
ATTENTIONS(f16, xpu::half)
ATTENTIONS(bf16, xpu::bf16)
ATTENTIONS(f32, float)
