// FlashAttention-3 (Shah et al., 2024) for Hopper: one warp group brings tiles of keys and values through TMA into
// a ring, two others take 64 queries each. Products are wgmma's, asynchronous: a warp group has the scores of the
// next keys computed while it multiplies values, and the two alternate, so that one's softmax hides behind the
// other's products.
#include "kernels/common/flash_softmax.cuh"
#include "kernels/common/flash_store.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/common/wgmma.cuh"

namespace {
using namespace gpu;

// `rows` x size elements as TMA writes them: parts of 64 columns, rows of 128 bytes, chunks exchanged by the row.
template <int rows_, int size>
struct TmaTile {
  static constexpr int rows = rows_, parts = size / 64, part_bytes = rows * 128, bytes = parts * part_bytes;

  SharedAddress base;

  __device__ __forceinline__ SharedAddress at(int row, int chunk) const {
    return base + uint32_t(chunk / 8 * part_bytes + row * 128 + ((chunk ^ row) & 7) * 16);
  }
  // 16 columns of all rows from `row`, for products in which K runs along rows.
  __device__ __forceinline__ MatrixDescriptor along_k(int row, int step) const {
    return MatrixDescriptor::along_k(base + uint32_t(step / 4 * part_bytes + row * 128 + step % 4 * 32));
  }
  // 16 rows of all columns, for products in which K runs across them.
  __device__ __forceinline__ MatrixDescriptor across_k(int step) const {
    return MatrixDescriptor::across_k(base + uint32_t(step * 16 * 128), part_bytes);
  }
};

template <int size_>
struct Hopper {
  static constexpr int size = size_, queries = FlashHopperShape::queries, keys = FlashHopperShape::keys;
  static constexpr int stages = FlashHopperShape::stages;
  using Queries = TmaTile<queries, size>;
  using Keys = TmaTile<keys, size>;
  using Scores = FragmentC[1][keys / 8];
  using Weights = FragmentA[keys / 16];
  using Result = FragmentC[1][size / 8];

  SharedAddress base;

  __device__ __forceinline__ explicit Hopper(const void* memory)
      : base((shared_address(memory) + FlashHopperShape::alignment - 1) / FlashHopperShape::alignment *
             FlashHopperShape::alignment) {}
  __device__ __forceinline__ Queries q() const { return {base}; }
  __device__ __forceinline__ Keys k(int stage) const {
    return {base + Queries::bytes + uint32_t(stage) * Keys::bytes};
  }
  __device__ __forceinline__ Keys v(int stage) const { return k(stages + stage); }
  // Barriers: the queries are there; keys or values of a stage are there, or are no longer read.
  __device__ __forceinline__ SharedAddress q_there() const { return k(2 * stages).base; }
  __device__ __forceinline__ SharedAddress k_there(int stage) const { return barrier(stage); }
  __device__ __forceinline__ SharedAddress v_there(int stage) const { return barrier(stages + stage); }
  __device__ __forceinline__ SharedAddress k_free(int stage) const { return barrier(2 * stages + stage); }
  __device__ __forceinline__ SharedAddress v_free(int stage) const { return barrier(3 * stages + stage); }

 private:
  __device__ __forceinline__ SharedAddress barrier(int i) const {
    return q_there() + uint32_t(1 + i) * barrier_bytes;
  }
};

// The stage of the ring that a block of keys uses, and the phase of its barriers.
template <class H>
struct Turn {
  int stage;
  uint32_t phase;

  __device__ __forceinline__ explicit Turn(int block) : stage(block % H::stages), phase(block / H::stages & 1) {}
};

template <class Tile>
__device__ __forceinline__ void bring(const Tile& to, const TensorMap& map, const FlashStrides& strides,
                                      SharedAddress there, int row, int head, int batch) {
  barrier_arrive_expecting(there, Tile::bytes);
#pragma unroll
  for (int part = 0; part < Tile::parts; ++part)
    copy_tile(to.base + uint32_t(part * Tile::part_bytes), map, there, part * 64, row, strides.head ? head : 0,
              strides.batch ? batch : 0);
}

// One thread brings everything, as soon as a buffer is free.
template <class H>
__device__ __forceinline__ void produce(const FlashMaps& m, const H& h, const Place& place, int blocks) {
  const int head = place.head / int(m.p.heads_per_key);
  bring(h.q(), m.q, m.p.q_strides, h.q_there(), place.first, place.head, place.batch);
  for (int block = 0; block < blocks; ++block) {
    const Turn<H> turn(block);
    barrier_wait(h.k_free(turn.stage), turn.phase ^ 1);  // at first both stages are free
    bring(h.k(turn.stage), m.k, m.p.k_strides, h.k_there(turn.stage), block * H::keys, head, place.batch);
    barrier_wait(h.v_free(turn.stage), turn.phase ^ 1);
    bring(h.v(turn.stage), m.v, m.p.v_strides, h.v_there(turn.stage), block * H::keys, head, place.batch);
  }
}

template <class T, class H>
__device__ __forceinline__ void multiply_keys(typename H::Scores& score, const H& h, int group, int stage) {
  wgmma_begin();
#pragma unroll
  for (int e = 0; e < H::size / 16; ++e)
    wgmma<T>(score, h.q().along_k(group * 64, e), h.k(stage).along_k(0, e), e != 0);
  wgmma_commit();
}

template <class T, class H>
__device__ __forceinline__ void multiply_values(typename H::Result& result, const typename H::Weights& weight,
                                                const H& h, int stage) {
  wgmma_begin();
#pragma unroll
  for (int k = 0; k < H::keys / 16; ++k) wgmma<T>(result, weight[k], h.v(stage).across_k(k));
  wgmma_commit();
}

template <class T, class H>
__device__ __forceinline__ void round_weights(typename H::Weights& weight, const typename H::Scores& score) {
#pragma unroll
  for (int k = 0; k < H::keys / 16; ++k) weight[k] = operand<T>(score[0][2 * k], score[0][2 * k + 1]);
}

// The barriers at which the two groups of consumers take turns in issuing products: a group's own, and the other's.
constexpr int both = 2 * 128;
__device__ __forceinline__ void await_turn(int group) { named_barrier_sync(1 + group, both); }
__device__ __forceinline__ void give_turn(int group) { named_barrier_arrive(2 - group, both); }

template <class T, class H>
__device__ __forceinline__ void consume(const Flash& p, const H& h, const Place& place, int blocks, int group) {
  const int thread = int(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
  const int own = group * 64 + warp * 16;  // the warp's first row
  const int whole = place.seen(place.first) / H::keys;
  const float scale = p.scale * log2_e;
  const bool releases = thread == 0;
  typename H::Scores score;
  typename H::Result result = {};
  typename H::Weights weight;
  Softmax<1> softmax;
  float factor[1][2];

  const auto hide_some = [&](int block) {
    hide(score, place, Corner{place.first + own + lane / 4, block * H::keys + lane % 4 * 2});
  };
  // A block whose scores are computed while the values of the one before are multiplied. No branch in between:
  // behind one, the compiler waits for all products at once.
  const auto step = [&](int block, auto hides) {
    const Turn<H> turn(block), before(block - 1);
    barrier_wait(h.k_there(turn.stage), turn.phase);
    barrier_wait(h.v_there(before.stage), before.phase);
    await_turn(group);
    multiply_keys<T>(score, h, group, turn.stage);
    multiply_values<T>(result, weight, h, before.stage);
    give_turn(group);
    wgmma_wait<1>(score);
    if constexpr (decltype(hides)::value) hide_some(block);
    softmax.add(score, scale, factor);
    settle(score);
    // Sums are never negative, but the compiler must have them here, where it would rather wait for the values
    // first.
    if (releases && softmax.sum[0][0] + softmax.sum[0][1] != -1.0f) barrier_arrive(h.k_free(turn.stage));
    wgmma_wait<0>(result);
    if (releases) barrier_arrive(h.v_free(before.stage));
    multiply_rows(result, factor);
    round_weights<T, H>(weight, score);
  };
  barrier_wait(h.q_there(), 0);
  if (group == 1) give_turn(group);  // the first group begins
  barrier_wait(h.k_there(0), 0);
  await_turn(group);
  multiply_keys<T>(score, h, group, 0);
  give_turn(group);
  wgmma_wait<0>(score);
  if (releases) barrier_arrive(h.k_free(0));
  if (whole == 0) hide_some(0);
  softmax.add(score, scale, factor);
  round_weights<T, H>(weight, score);
  int block = 1;
  for (; block < whole; ++block) step(block, std::false_type());
  for (; block < blocks; ++block) step(block, std::true_type());
  const Turn<H> last(blocks - 1);
  barrier_wait(h.v_there(last.stage), last.phase);
  multiply_values<T>(result, weight, h, last.stage);
  if (group == 0) await_turn(group);  // what the second group gave last
  wgmma_wait<0>(result);
  softmax.finish();
  named_barrier_sync(3 + group, 128);  // the queries have been multiplied, and results go there
  store<T>(p, place, h.q(), result, softmax, 1.0f, own, lane);
  if (p.lse) store_lse(p, place, softmax, scale, place.first + own, lane);
}

template <class T, int size>
__device__ __forceinline__ void forward(const FlashMaps& m) {
  using H = Hopper<size>;
  DYNAMIC_SHARED(uint4, memory);
  const H h(memory);
  const Place place(m.p, int(blockIdx.x), H::queries);
  const int last = (place.first + H::queries < place.queries ? place.first + H::queries : place.queries) - 1;
  const int blocks = (place.seen(last) + H::keys - 1) / H::keys;
  if (threadIdx.x == 0) {
    barrier_init(h.q_there(), 1);
    for (int i = 0; i < H::stages; ++i) {
      barrier_init(h.k_there(i), 1), barrier_init(h.v_there(i), 1);
      barrier_init(h.k_free(i), 2), barrier_init(h.v_free(i), 2);  // by both groups of consumers
    }
    barrier_init_done();
  }
  __syncthreads();
  // 168 registers a thread are the block's; what the first group leaves, the others take.
  if (threadIdx.x < 128) {
    leave_registers<24>();
    if (threadIdx.x == 0) produce(m, h, place, blocks);
  } else {
    take_registers<240>();
    consume<T>(m.p, h, place, blocks, int(threadIdx.x) / 128 - 1);
  }
}
}  // namespace

#define FLASH(type, T, size)                                                                             \
  KERNEL(FlashHopperShape::threads, flash_hopper_##type##_##size)(const __grid_constant__ FlashMaps m) { \
    forward<T, size>(m);                                                                                 \
  }
#define FLASHES(type, T) FLASH(type, T, 64) FLASH(type, T, 128)
FLASHES(f16, gpu::half)
FLASHES(bf16, gpu::bf16)
