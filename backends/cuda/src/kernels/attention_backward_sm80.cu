// The gradients of attention (Dao, 2023) on mma.sync, the same bits every time: no atomic sums, but one kernel that
// loops over keys for the gradients of queries, and one that loops over queries for those of keys and values.
// Weights are computed again from the logarithms that the forward kernels left.
#include "kernels/common/flash_mask.cuh"

namespace {
using namespace gpu;
constexpr int block = flash_backward_block, threads = flash_backward_threads, own = 16;  // own: rows of a warp

// The scores of so many queries and a block of keys.
template <int size, int queries>
struct Tiles {
  using Queries = SwizzledTile<queries, size>;
  using Keys = SwizzledTile<block, size>;
  using Result = FragmentC[1][size / 8];

  Queries q, d_out;
  Keys k, v;

  __device__ __forceinline__ explicit Tiles(const void* memory)
      : q{shared_address(memory)},
        d_out{q.base + Queries::bytes},
        k{d_out.base + Queries::bytes},
        v{k.base + Keys::bytes} {}
};

// The sums of a query: nothing where there is none, or where it saw no key.
struct Query {
  float lse, delta;

  __device__ __forceinline__ Query(const FlashBackward& b, const Place& place, int query) : lse(-least), delta(0) {
    if (query >= place.queries) return;
    const float found = place.of_queries(b.p, b.p.lse)[query];
    lse = found == least ? -least : found * log2_e, delta = place.of_queries(b.p, b.delta)[query];
  }
  // Score and gradient of a weight as it counts become that weight and the score's gradient. `kept` is what dropout
  // multiplies the weight by.
  __device__ __forceinline__ void differentiate(float& score, float& slope, float scale, float mask, bool is_seen,
                                                float kept) const {
    is_seen = is_seen && mask != least;
    const float weight = is_seen ? exp2_approximate(fmaf(score, scale, mask - lse)) : 0.0f;
    slope = is_seen ? weight * (fmaf(slope, kept, -delta)) : 0.0f;
    score = weight * kept;
  }
};

// The mask of a lane's scores, and which of them dropout takes, found in a loop: unrolled as products are, it would
// be most of the kernel. What is added to scores waits in shared memory, where each thread has places of its own.
struct Exceptions {
  const Flash& p;
  float* added;
  uint32_t dropped = 0;

  __device__ __forceinline__ Exceptions(const Flash& p_, void* memory)
      : p(p_), added(static_cast<float*>(memory) + threadIdx.x) {}

  // For `count` scores, where at(i) is the query and the key of number i.
  template <int count, class At>
  __device__ __forceinline__ void find(const Place& place, At at) {
    static_assert(count <= flash_backward_scores);
    dropped = 0;
    if (!p.mask && !p.dropout.key) return;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const Corner c = at(i);
      const bool is_there = c.query < place.queries && c.key < place.keys;
      if (p.mask) added[i * threads] = is_there ? mask_of(place, c) : 0.0f;
      if (p.dropout.key) dropped |= uint32_t{is_dropped(p, place, c.query, c.key)} << i;
    }
  }
  __device__ __forceinline__ float mask(int i) const { return p.mask ? added[i * threads] : 0.0f; }
  __device__ __forceinline__ float kept(int i) const {
    return dropped >> i & 1 ? 0.0f : float(p.dropout.kept_scale);
  }

 private:
  // An exponent of 2.
  __device__ __forceinline__ float mask_of(const Place& place, const Corner& c) const {
    const FlashStrides& s = p.mask_strides;
    const int64_t at = place.batch * s.batch + place.head * s.head + c.query * s.row + c.key * p.mask_column;
    switch (p.mask_kind) {
      case mask_bool: return static_cast<const uint8_t*>(p.mask)[at] ? 0.0f : least;
      case mask_f16: return float(static_cast<const half*>(p.mask)[at]) * log2_e;
      case mask_bf16: return float(static_cast<const bf16*>(p.mask)[at]) * log2_e;
      default: return static_cast<const float*>(p.mask)[at] * log2_e;
    }
  }
};

// Writes a warp's rows from `first`.
template <class T, int n>
__device__ __forceinline__ void store_rows(T* to, int64_t stride, int first, int rows, int columns,
                                           const FragmentC (&x)[1][n], float factor, int lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first + lane / 4 + r * 8;
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (row < rows && i * 8 < columns)
        *reinterpret_cast<uint32_t*>(to + (row * stride + i * 8 + lane % 4 * 2)) =
            pack<T>(x[0][i].x[2 * r] * factor, x[0][i].x[2 * r + 1] * factor);
  }
}

template <class T, int size>
__device__ __forceinline__ void query_gradients(const FlashBackward& b) {
  DYNAMIC_SHARED(uint4, memory);
  const Flash& p = b.p;
  using Block = Tiles<size, block>;
  const Block tiles(memory);
  const Place place(p, int(blockIdx.x), block);
  if (place.first >= place.queries) return;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, row = place.first + warp * own + lane / 4;
  const Query queries[2] = {Query(b, place, row), Query(b, place, row + 8)};
  Exceptions exceptions(p, memory + flash_backward_tile_bytes(size) / sizeof(uint4));
  const T* d_out = place.rows(static_cast<const T*>(b.d_out), b.d_out_strides, place.head, place.q_row);
  fill<threads>(tiles.q, place.q<T>(p), p.q_strides.row, place.first, place.queries, int(p.size));
  fill<threads>(tiles.d_out, d_out, b.d_out_strides.row, place.first, place.queries, int(p.value_size));
  const int last = (place.first + block < place.queries ? place.first + block : place.queries) - 1;
  typename Block::Result d_q = {};
  for (int key = 0; key < place.seen(last); key += block) {
    __syncthreads();  // the keys before have been read
    fill<threads>(tiles.k, place.k<T>(p), p.k_strides.row, key, place.keys, int(p.size));
    fill<threads>(tiles.v, place.v<T>(p), p.v_strides.row, key, place.keys, int(p.value_size));
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    exceptions.find<block / 2>(
        place, [=](int i) { return Corner{row + i / 2 % 2 * 8, key + i / 4 * 8 + lane % 4 * 2 + i % 2}; });
    FragmentC score[1][block / 8] = {}, slope[1][block / 8] = {};
    add_products<T>(score, tiles.q, warp * own, tiles.k, lane);
    add_products<T>(slope, tiles.d_out, warp * own, tiles.v, lane);
#pragma unroll
    for (int n = 0; n < block / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = key + n * 8 + lane % 4 * 2 + i % 2;
        queries[i / 2].differentiate(score[0][n].x[i], slope[0][n].x[i], p.scale * log2_e,
                                     exceptions.mask(4 * n + i), column < place.seen(row + i / 2 * 8),
                                     exceptions.kept(4 * n + i));
      }
    add_weighted<T>(d_q, slope, tiles.k, lane);
  }
  copy_async_commit();
  copy_async_wait<0>();  // no query of this block may have seen a key
  store_rows(place.rows(static_cast<T*>(b.d_q), b.d_q_strides, place.head, place.q_row), b.d_q_strides.row,
             place.first + warp * own, place.queries, int(p.size), d_q, p.scale, lane);
}

// Scores lie with keys along rows: so weights are operands as they come.
template <class T, int size>
__device__ __forceinline__ void key_gradients(const FlashBackward& b) {
  DYNAMIC_SHARED(uint4, memory);
  const Flash& p = b.p;
  constexpr int many = size > 64 ? 32 : 64;  // queries at a time: what registers hold
  using Block = Tiles<size, many>;
  const Block tiles(memory);
  Place place(p, int(blockIdx.x), block, p.heads / p.heads_per_key);
  place.head *= int(p.heads_per_key);
  if (place.first >= place.keys) return;
  fill<threads>(tiles.k, place.k<T>(p), p.k_strides.row, place.first, place.keys, int(p.size));
  fill<threads>(tiles.v, place.v<T>(p), p.v_strides.row, place.first, place.keys, int(p.value_size));
  const int seeing = place.first - place.ahead + 1, begin = seeing > 0 ? seeing / many * many : 0;
  typename Block::Result d_k = {}, d_v = {};
  Exceptions exceptions(p, memory + flash_backward_tile_bytes(size) / sizeof(uint4));
  for (uint32_t i = 0; i < p.heads_per_key; ++i, ++place.head) {
    for (int query = begin; query < place.queries; query += many) {
      __syncthreads();  // the queries before have been read
      fill<threads>(tiles.q, place.q<T>(p), p.q_strides.row, query, place.queries, int(p.size));
      fill<threads>(tiles.d_out,
                    place.rows(static_cast<const T*>(b.d_out), b.d_out_strides, place.head, place.q_row),
                    b.d_out_strides.row, query, place.queries, int(p.value_size));
      copy_async_commit();
      copy_async_wait<0>();
      __syncthreads();
      const int thread = opaque(int(threadIdx.x)), warp = thread / 32, lane = thread % 32;
      const int row = place.first + warp * own + lane / 4;
      exceptions.find<many / 2>(
          place, [=](int i) { return Corner{query + i / 4 * 8 + lane % 4 * 2 + i % 2, row + i / 2 % 2 * 8}; });
      FragmentC score[1][many / 8] = {}, slope[1][many / 8] = {};
      add_products<T>(score, tiles.k, warp * own, tiles.q, lane);
      add_products<T>(slope, tiles.v, warp * own, tiles.d_out, lane);
#pragma unroll
      for (int n = 0; n < many / 8; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int column = query + n * 8 + lane % 4 * 2 + j;
          const Query of(b, place, column);
#pragma unroll
          for (int r = 0; r < 2; ++r)
            of.differentiate(score[0][n].x[2 * r + j], slope[0][n].x[2 * r + j], p.scale * log2_e,
                             exceptions.mask(4 * n + 2 * r + j), row + r * 8 < place.seen(column),
                             exceptions.kept(4 * n + 2 * r + j));
        }
      add_weighted<T>(d_v, score, tiles.d_out, lane);
      add_weighted<T>(d_k, slope, tiles.q, lane);
    }
  }
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  copy_async_commit();
  copy_async_wait<0>();  // no query may have seen a key of this block
  const int key_head = place.head / int(p.heads_per_key) - 1;
  store_rows(place.rows(static_cast<T*>(b.d_k), b.d_k_strides, key_head, place.k_row), b.d_k_strides.row,
             place.first + warp * own, place.keys, int(p.size), d_k, p.scale, lane);
  store_rows(place.rows(static_cast<T*>(b.d_v), b.d_v_strides, key_head, place.k_row), b.d_v_strides.row,
             place.first + warp * own, place.keys, int(p.value_size), d_v, 1.0f, lane);
}

// A warp for each query: as many blocks as gradients of queries have, each warp a fourth of a block's queries.
template <class T>
__device__ __forceinline__ void deltas(const FlashBackward& b) {
  const Flash& p = b.p;
  const Place place(p, int(blockIdx.x), block);
  const T* out = place.out<T>(p);
  const T* d_out = place.rows(static_cast<const T*>(b.d_out), b.d_out_strides, place.head, place.q_row);
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  for (int query = place.first + warp; query < place.first + block && query < place.queries;
       query += threads / 32) {
    float sum = 0;
    for (int i = lane; i < int(p.value_size); i += 32)
      sum = fmaf(float(out[query * p.out_strides.row + i]), float(d_out[query * b.d_out_strides.row + i]), sum);
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) place.of_queries(p, b.delta)[query] = sum;
  }
}
}  // namespace

#define FLASH(type, T, size)                                                                               \
  KERNEL(threads, flash_query_gradients_##type##_##size)(FlashBackward b) { query_gradients<T, size>(b); } \
  KERNEL(threads, flash_key_gradients_##type##_##size)(FlashBackward b) { key_gradients<T, size>(b); }
#define FLASHES(type, T)                                                  \
  KERNEL(threads, flash_deltas_##type)(FlashBackward b) { deltas<T>(b); } \
  FLASH(type, T, 64) FLASH(type, T, 128)
FLASHES(f16, gpu::half)
FLASHES(bf16, gpu::bf16)
