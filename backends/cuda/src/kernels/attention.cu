// Attention of any type, strides and sizes: a block takes some queries of one matrix and loops over blocks of keys
// with a running maximum and sum of each query (Dao et al., FlashAttention, 2022). Adjacent threads own
// adjacent keys, and then columns of values.
#include "kernels/common/dropout.cuh"
#include "kernels/common/tile.cuh"

namespace {
using namespace gpu;

// A score with its mask, which hides NaN too.
template <class C>
__device__ __forceinline__ C masked(C score, const void* mask, MaskKind kind, int64_t at) {
  switch (kind) {
    case mask_none: return score;
    case mask_bool: return static_cast<const uint8_t*>(mask)[at] ? score : -math::infinity<C>;
    case mask_f16: return score + C(float(static_cast<const half*>(mask)[at]));
    case mask_bf16: return score + C(float(static_cast<const bf16*>(mask)[at]));
    case mask_f32: return score + C(static_cast<const float*>(mask)[at]);
    default: return score + C(static_cast<const double*>(mask)[at]);
  }
}

// Joins the adjacent threads that share queries.
template <class C, class Combine>
__device__ __forceinline__ C across(C x, Combine combine) {
  for (int step = side / 2; step; step /= 2) x = combine(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

// The number that exponents are relative to: the maximum, or 0 where no key has been seen, or an infinite score.
template <class C>
__device__ __forceinline__ C origin(C top) {
  return top == -math::infinity<C> || top == math::infinity<C> ? C(0) : top;
}

// The first element of a matrix in each operand.
struct Begin {
  int64_t q = 0, k = 0, v = 0, mask = 0;

  __device__ Begin(const Attention& p, uint64_t matrix) {
    for (uint32_t axis = 0; axis < p.axes; ++axis) {
      const uint64_t rest = matrix / p.batch[axis];
      const auto n = int64_t(matrix - rest * p.batch[axis]), shared = axis ? n : n / p.heads_per_key;
      q += n * p.q.batch[axis], k += shared * p.k.batch[axis], v += shared * p.v.batch[axis];
      mask += n * p.mask.batch[axis];
      matrix = rest;
    }
  }
};

template <class C>
struct Tiles {
  static constexpr int block = attention_block(sizeof(C));

  Tile<C, block> left, right, weights[block / side];
};

template <class T>
__device__ __forceinline__ void attend(const T* q, const T* k, const T* v, const void* mask, T* out,
                                       const Attention& p) {
  using C = Compute<T>;
  constexpr int block = attention_block(sizeof(C)), each = block / side;
  constexpr C least = -math::infinity<C>;
  static_assert(sizeof(Tiles<C>) == attention_shared_bytes(sizeof(C)));
  DYNAMIC_SHARED(Tiles<C>, tiles);
  auto& [left, right, weights] = *tiles;
  const int ty = int(threadIdx.x) / side, tx = int(threadIdx.x) % side;
  const uint64_t matrix = blockIdx.x / p.blocks, first = (blockIdx.x - matrix * p.blocks) * block,
                 value = uint64_t(blockIdx.y) * block;
  const Begin begin(p, matrix);
  const Vectors<T> q_rows{q + begin.q, p.queries, p.size, p.q.row, p.q.column},
      k_rows{k + begin.k, p.keys, p.size, p.k.row, p.k.column},
      v_columns{v + begin.v, p.value_size, p.keys, p.v.column, p.v.row};

  C top[each], sum[each] = {}, result[each][each] = {};  // of the queries ty + side * i
  for (int i = 0; i < each; ++i) top[i] = least;
  const uint64_t end = p.causal && first + block < p.keys ? first + block : p.keys;
  for (uint64_t key = 0; key < end; key += block) {
    C score[each][each] = {};  // of the keys tx + side * j
    for (uint64_t e = 0; e < p.size; e += tile_depth) {
      fill(left, q_rows, first, e, ty, tx);
      fill(right, k_rows, key, e, ty, tx);
      __syncthreads();
      add_products(score, left, right, ty, tx);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const uint64_t row = first + uint64_t(ty + side * i);
      const uint64_t seen = row >= p.queries ? 0 : p.causal && row + 1 < p.keys ? row + 1 : p.keys;
      C most = top[i];
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const uint64_t column = key + uint64_t(tx + side * j);
        const int64_t at = begin.mask + int64_t(row) * p.mask.row + int64_t(column) * p.mask.column;
        score[i][j] = column < seen ? masked(score[i][j] * C(p.scale), mask, p.mask_kind, at) : least;
        most = score[i][j] > most ? score[i][j] : most;
      }
      most = across(most, [](C a, C b) { return a > b ? a : b; });
      const C factor = math::exp(top[i] - origin(most));
      top[i] = most, sum[i] *= factor;
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const C weight = math::exp(score[i][j] - origin(most));
        result[i][j] *= factor, sum[i] += weight;
        const uint64_t at = (matrix * p.queries + row) * p.keys + key + uint64_t(tx + side * j);
        const bool drops = p.dropout.key && is_dropped(p.dropout, at);
        weights[j].at[tx][ty + side * i] = drops ? C(0) : weight;
      }
    }
    for (int j = 0; j < each; ++j) {
      fill(right, v_columns, value, key + uint64_t(side * j), ty, tx);
      __syncthreads();
      add_products(result, weights[j], right, ty, tx);
      __syncthreads();
    }
  }

#pragma unroll
  for (int i = 0; i < each; ++i) {
    const C total = across(sum[i], [](C a, C b) { return a + b; });
    const uint64_t row = first + uint64_t(ty + side * i);
    C divisor = total;
    if (p.dropout.key && total != total && drops_all(p.dropout, (matrix * p.queries + row) * p.keys, p.keys))
      divisor = math::infinity<C>;
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const uint64_t column = value + uint64_t(tx + side * j);
      if (row < p.queries && column < p.value_size)  // a query that sees no key: 0
        out[(matrix * p.queries + row) * p.value_size + column] =
            T(total == 0 ? C(0) : result[i][j] / divisor * C(p.dropout.kept_scale));
    }
    if (p.lse && blockIdx.y == 0 && tx == 0 && row < p.queries)
      static_cast<C*>(p.lse)[matrix * p.queries + row] = origin(top[i]) + math::log(total);
  }
}
}  // namespace

#define ATTENTION(suffix, T)                                                                    \
  KERNEL(256, attention_##suffix)(const T* q, const T* k, const T* v, const void* mask, T* out, \
                                  gpu::Attention p) {                                           \
    attend(q, k, v, mask, out, p);                                                              \
  }
DVT_FLOATS(ATTENTION)
