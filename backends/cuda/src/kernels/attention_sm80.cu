// FlashAttention-2 (Dao, 2023) on mma.sync and cp.async: a block of warps takes some queries of a head, each warp
// its own, and loops over blocks of keys. While keys are multiplied, their values are on the way, and the next keys
// while values are. The probabilities pass from one product into the next in registers.
#include "kernels/common/flash_softmax.cuh"
#include "kernels/common/flash_store.cuh"

namespace {
using namespace gpu;

template <FlashShape s>
struct Shape {
  static constexpr int size = s.size, tiles = s.tiles, keys = s.keys, queries = s.queries(), threads = s.threads();
  static constexpr int own = tiles * 16;  // of a warp
  using Queries = SwizzledTile<queries, size>;
  using Keys = SwizzledTile<keys, size>;
  using Scores = FragmentC[tiles][keys / 8];
  using Result = FragmentC[tiles][size / 8];
};

template <class T, class S, bool general>
__device__ __forceinline__ void forward(const Flash& p) {
  DYNAMIC_SHARED(uint4, memory);
  const Place place(p, int(blockIdx.x), S::queries);
  if (place.first >= place.queries) return;  // a shorter sequence
  const typename S::Queries q_tile{shared_address(memory)};
  const typename S::Keys k_tile{q_tile.base + S::Queries::bytes}, v_tile{k_tile.base + S::Keys::bytes};
  const T *q = place.q<T>(p), *k = place.k<T>(p), *v = place.v<T>(p);
  const int last = (place.first + S::queries < place.queries ? place.first + S::queries : place.queries) - 1;
  const int end = place.seen(last), whole = place.seen(place.first) / S::keys * S::keys;
  const float scale = general ? 1.0f : p.scale * log2_e;  // the general scores are scaled with their mask

  fill<S::threads>(q_tile, q, p.q_strides.row, place.first, place.queries, int(p.size));
  fill<S::threads>(k_tile, k, p.k_strides.row, 0, place.keys, int(p.size));
  copy_async_commit();
  typename S::Result result = {};
  Softmax<S::tiles> softmax;
  for (int key = 0; key < end; key += S::keys) {
    copy_async_wait<0>();
    __syncthreads();  // the keys are here, and the values before have been read
    fill<S::threads>(v_tile, v, p.v_strides.row, key, place.keys, int(p.value_size));
    copy_async_commit();
    const int thread = opaque(int(threadIdx.x)), warp = thread / 32, lane = thread % 32;
    typename S::Scores score = {};
    add_products<T>(score, q_tile, warp * S::own, k_tile, lane);
    const Corner corner{place.first + warp * S::own + lane / 4, key + lane % 4 * 2};
    if constexpr (general) add_mask(score, p, place, corner);
    if (key >= whole) hide(score, place, corner);
    copy_async_wait<0>();
    __syncthreads();  // the values are here, and the keys have been read
    if (key + S::keys < end) fill<S::threads>(k_tile, k, p.k_strides.row, key + S::keys, place.keys, int(p.size));
    copy_async_commit();
    float factor[S::tiles][2];
    softmax.add(score, scale, factor);
    multiply_rows(result, factor);
    if constexpr (general)
      if (p.dropout.key) drop(score, p, place, corner);
    add_weighted<T>(result, score, v_tile, opaque(lane));
  }
  copy_async_wait<0>();  // where no query sees a key, the queries are still on their way, and results go there
  __syncthreads();
  softmax.finish();
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const Place here(p, opaque(int(blockIdx.x)), S::queries);
  if (p.lse) store_lse(p, here, softmax, scale, here.first + warp * S::own, lane);
  if constexpr (general)
    if (p.dropout.key) forget_dropped(softmax, p, here, here.first + warp * S::own + lane / 4);
  store<T>(p, here, q_tile, result, softmax, general ? float(p.dropout.kept_scale) : 1.0f, warp * S::own, lane);
}
}  // namespace

// Two blocks of four warps fill a multiprocessor's registers, or one of eight: for a third one the compiler would
// rather spill than take what random numbers need.
#define GENERAL_BOUNDS(size) flash_shape(size).threads(), 256 / flash_shape(size).threads()
#define FLASH(type, T, size)                                              \
  KERNEL((flash_shape(size).threads()), flash_##type##_##size)(Flash p) { \
    forward<T, Shape<flash_shape(size)>, false>(p);                       \
  }                                                                       \
  KERNEL(GENERAL_BOUNDS(size), flash_general_##type##_##size)(Flash p) {  \
    forward<T, Shape<flash_shape(size)>, true>(p);                        \
  }
#define FLASHES(type, T) \
  FLASH(type, T, 32)     \
  FLASH(type, T, 64) FLASH(type, T, 96) FLASH(type, T, 128) FLASH(type, T, 192) FLASH(type, T, 256)
FLASHES(f16, gpu::half)
FLASHES(bf16, gpu::bf16)
