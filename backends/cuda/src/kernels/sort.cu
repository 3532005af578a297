// sort, argsort, top_k along one axis: operand 0 is x, operand 1 the result. Stable, NaN last, zeros of both signs
// equal.
// Elements are moved as they are and compared by keys, unsigned integers in the wanted order. Rows of a warp's
// size are sorted by a bitonic network (Batcher, 1968), those of a block's digit by digit in shared memory, longer
// ones digit by digit too: all parts count their digits, then know where theirs begin, then move their elements.
#include "kernels/common/order.hpp"
#include "kernels/common/rank.cuh"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Order;
using gpu::Part;
using gpu::Place;
using gpu::ReductionPlan;
using gpu::Row;

template <class U>
__device__ __forceinline__ uint32_t digit_of(U element, const Order& order, uint32_t shift) {
  return uint32_t(gpu::make_key(element, order) >> shift) % gpu::digits;
}

// Elements and where they come from; one of both results is wanted, or both.
template <class U>
struct Results {
  U* values;
  int64_t* indices;

  __device__ __forceinline__ void put(int64_t at, U value, uint32_t index) const {
    if (indices) indices[at] = index;
    if (values) values[at] = value;
  }
};

// Rows of at most a warp, by as many lanes: each takes the lesser or the greater of itself and another lane.
template <class U>
__device__ __forceinline__ void sort_short(const U* x, const Results<U>& out, const ReductionPlan& how,
                                           const Order& order) {
  const gpu::Axis& axis = how.axis[how.kept];
  gpu::for_each_row(how, [&](const Row& team, uint64_t, const Place& place, const Part& row) {
    const bool exists = team.lane < row.end;
    const U mine = exists ? x[place.at[0] + int64_t(team.lane) * axis.stride[0]] : U();
    U key = exists ? gpu::make_key(mine, order) : U(~U(0));
    uint32_t index = team.lane;
    for (uint32_t run = 2; run <= team.width; run *= 2)
      for (uint32_t step = run / 2; step; step /= 2) {
        const U other = gpu::shuffle_xor(key, step);
        const uint32_t other_index = gpu::shuffle_xor(index, step);
        const bool other_first = other < key || (other == key && other_index < index);
        const bool wants_first = ((team.lane & step) == 0) == ((team.lane & run) == 0);
        if (other_first == wants_first) key = other, index = other_index;
      }
    const U value = gpu::shuffle(mine, index, team.width);
    if (exists) out.put(place.at[1] + int64_t(team.lane) * axis.stride[1], value, index);
  });
}

// A tile in the threads of a block, and in shared memory while it changes places.
template <class U>
struct Tile {
  static constexpr int most = gpu::sort_items(sizeof(U));
  struct Memory {
    gpu::DigitCounts counts;
    U element[most * gpu::sort_threads];
    uint32_t index[most * gpu::sort_threads];
  };

  Memory& memory;
  const uint32_t n, items;  // elements, and of each thread
  U element[most];
  uint32_t index[most];

  __device__ __forceinline__ explicit Tile(uint32_t elements)
      : memory(*gpu::shared_slots<Memory, 1>()),
        n(elements),
        items((elements + gpu::sort_threads - 1) / gpu::sort_threads) {}

  // body(k, e) for item k of this thread, which is element e.
  template <class Body>
  __device__ __forceinline__ void for_each(Body body) {
#pragma unroll
    for (int k = 0; k < most; ++k) {
      const uint32_t e = gpu::item_of(uint32_t(k), items);
      if (uint32_t(k) < items && e < n) body(k, e);
    }
  }

  // Leaves them in shared memory, sorted by a digit. Missing ones come behind all.
  __device__ __forceinline__ gpu::DigitOfThread sort(const Order& order, uint32_t shift) {
    uint32_t digit[most], rank[most];
#pragma unroll
    for (int k = 0; k < most; ++k) digit[k] = gpu::digits - 1;
    for_each([&](int k, uint32_t) { digit[k] = digit_of(element[k], order, shift); });
    const gpu::DigitOfThread mine = gpu::rank_digits(digit, rank, items, memory.counts);
    for_each([&](int k, uint32_t) { memory.element[rank[k]] = element[k], memory.index[rank[k]] = index[k]; });
    __syncthreads();
    return mine;
  }
};

// The first of each row. `from` gives the original index of an element that was already chosen once.
template <class U>
__device__ __forceinline__ void sort_block(const U* x, const uint32_t* from, const Results<U>& out,
                                           const ReductionPlan& how, const Order& order, uint32_t first) {
  const gpu::Axis& axis = how.axis[how.kept];
  gpu::for_each_row(how, [&](const Row&, uint64_t, const Place& place, const Part& row) {
    Tile<U> tile(uint32_t(row.end));
    tile.for_each([&](int k, uint32_t e) {
      tile.element[k] = x[place.at[0] + int64_t(e) * axis.stride[0]], tile.index[k] = e;
    });
#pragma unroll 1  // the body is long
    for (uint32_t shift = 0; shift < 8 * sizeof(U); shift += gpu::digit_bits) {
      tile.sort(order, shift);
      tile.for_each([&](int k, uint32_t e) {
        tile.element[k] = tile.memory.element[e], tile.index[k] = tile.memory.index[e];
      });
      __syncthreads();
    }
    tile.for_each([&](int k, uint32_t e) {
      if (e >= first) return;
      const uint32_t index = tile.index[k];
      out.put(place.at[1] + int64_t(e) * axis.stride[1], tile.element[k],
              from ? from[place.at[0] + int64_t(index) * axis.stride[0]] : index);
    });
  });
}

// The key of the last of the first `wanted` of a row: digit by digit, from the highest on (Alabi, Blanchard,
// Gordon and Steinbach, 2012).
template <class U>
struct Last {
  U key = 0;
  uint32_t wanted;  // of the elements that have this key, as many are among the first

  __device__ __forceinline__ Last(const Row& block, const Part& row, const U* from, int64_t stride,
                                  const Order& order, uint32_t first)
      : wanted(first) {
    uint32_t* const count = gpu::shared_slots<uint32_t, gpu::digits>();
    uint32_t* const found = gpu::shared_slots<uint32_t, 2>();
    U known = 0;
#pragma unroll 1
    for (int shift = 8 * int(sizeof(U)) - gpu::digit_bits; shift >= 0; shift -= gpu::digit_bits) {
      count[block.lane] = 0;
      __syncthreads();
      gpu::for_each_apart(block, row, from, stride, [&](uint64_t, U element) {
        const U k = gpu::make_key(element, order);
        if (U(k & known) == key) atomicAdd(&count[uint32_t(k >> shift) % gpu::digits], 1u);
      });
      __syncthreads();
      const uint32_t mine = count[block.lane];
      uint32_t all;
      const uint32_t before = block.scan<gpu::Total>(mine, all);
      if (before < wanted && wanted <= before + mine) found[0] = block.lane, found[1] = wanted - before;
      __syncthreads();
      key = U(key | U(U(found[0]) << shift)), known = U(known | U(U(gpu::digits - 1) << shift));
      wanted = found[1];
      __syncthreads();
    }
  }
};

// Selects the first elements of each row in sorted order, and stores them in the order of their places, row by row
// without gaps.
template <class U>
__device__ __forceinline__ void select_first(const U* x, U* values, uint32_t* indices, const ReductionPlan& how,
                                             const Order& order, uint32_t first) {
  constexpr uint32_t each = 16;  // elements of a thread: a scan of the block is not cheap
  const int64_t stride = how.axis[how.kept].stride[0];
  gpu::for_each_row(how, [&](const Row& block, uint64_t number, const Place& place, const Part& row) {
    const U* const from = x + place.at[0];
    const Last<U> last(block, row, from, stride, order, first);
    uint64_t lesser = 0, equal = 0;  // so far
    for (uint64_t start = 0; start < row.end; start += each * block.width) {
      const uint64_t begin = start + block.lane * each, end = begin + each < row.end ? begin + each : row.end;
      uint32_t mine = 0, all;  // lesser ones, and from bit 16 on equal ones
#pragma unroll 4
      for (uint64_t i = begin; i < end; ++i) {
        const U key = gpu::make_key(from[int64_t(i) * stride], order);
        mine += uint32_t(key < last.key) + (uint32_t(key == last.key) << 16);
      }
      const uint32_t before = block.scan<gpu::Total>(mine, all);
      uint64_t lesser_before = lesser + (before & 0xFFFF), equal_before = equal + (before >> 16);
#pragma unroll 1  // few have any
      for (uint64_t i = begin; mine && i < end; ++i) {
        const U element = from[int64_t(i) * stride], key = gpu::make_key(element, order);
        const uint64_t taken = equal_before < last.wanted ? equal_before : last.wanted;
        const uint64_t at = number * first + lesser_before + taken;
        if (key < last.key || (key == last.key && equal_before < last.wanted))
          values[at] = element, indices[at] = uint32_t(i);
        lesser_before += key < last.key, equal_before += key == last.key;
      }
      lesser += all & 0xFFFF, equal += all >> 16;
    }
  });
}

// counts[row][digit][part]. A warp counts for itself: fewer threads wait for each other.
template <class U>
__device__ __forceinline__ void sort_count(const U* x, uint32_t* counts, const ReductionPlan& how,
                                           const Order& order, uint32_t shift) {
  gpu::DigitCounts& count = *gpu::shared_slots<gpu::DigitCounts, 1>();
  const int64_t stride = how.axis[how.kept].stride[0];
  gpu::for_each_row(how, [&](const Row& block, uint64_t row, const Place& place, const Part& part) {
    for (int w = 0; w < gpu::sort_warps; ++w) count[w][block.lane] = 0;
    __syncthreads();
    gpu::for_each_apart(block, part, x + place.at[0], stride, [&](uint64_t, U element) {
      atomicAdd(&count[block.lane / gpu::warp_size][digit_of(element, order, shift)], 1u);
    });
    __syncthreads();
    uint32_t all = 0;
    for (int w = 0; w < gpu::sort_warps; ++w) all += count[w][block.lane];
    counts[(row * gpu::digits + block.lane) * how.parts.value + part.index] = all;
    __syncthreads();
  });
}

// Counts the elements before each part of a digit, and all of them in totals[row][digit]. A block for each digit.
__device__ __forceinline__ void find_starts(uint32_t* counts, uint32_t* totals, uint64_t rows, uint64_t parts) {
  const Row block(gpu::sort_threads);
  for (uint64_t l = blockIdx.x; l < rows * gpu::digits; l += gridDim.x) {
    uint32_t before = 0, all;
    for (uint64_t first = 0; first < parts; first += block.width, before += all) {
      const uint64_t p = first + block.lane;
      const uint32_t count = p < parts ? counts[l * parts + p] : 0;
      const uint32_t start = block.scan<gpu::Total>(count, all);
      if (p < parts) counts[l * parts + p] = before + start;
    }
    if (block.lane == 0) totals[l] = before;
  }
}

// One pass of the sort. The first pass takes x's own positions as indices, later ones those stored with the
// elements; they go to the next pass or to the result.
template <class U>
__device__ __forceinline__ void sort_move(const U* x, const uint32_t* index, U* next, uint32_t* next_index,
                                          int64_t* indices, const uint32_t* counts, const uint32_t* totals,
                                          const ReductionPlan& how, const Order& order, uint32_t shift) {
  constexpr uint32_t most = gpu::sort_tile(sizeof(U));
  uint32_t* const base =
      gpu::shared_slots<uint32_t, gpu::digits>();  // where a tile's first element goes, less its rank
  const gpu::Axis& axis = how.axis[how.kept];
  gpu::for_each_row(how, [&](const Row& block, uint64_t row, const Place& place, const Part& part) {
    const uint64_t mine = row * gpu::digits + block.lane;
    uint32_t all, place_of_digit = block.scan<gpu::Total>(totals[mine], all);
    place_of_digit += counts[mine * how.parts.value + part.index];
    for (uint64_t first = part.begin; first < part.end; first += most) {
      Tile<U> tile(uint32_t(part.end - first < most ? part.end - first : most));
      tile.for_each([&](int k, uint32_t e) {
        const int64_t at = place.at[0] + int64_t(first + e) * axis.stride[0];
        tile.element[k] = x[at], tile.index[k] = index ? index[at] : uint32_t(first + e);
      });
      const gpu::DigitOfThread digit = tile.sort(order, shift);
      base[block.lane] = place_of_digit - digit.start;
      place_of_digit += digit.count;
      __syncthreads();
      for (uint32_t e = block.lane; e < tile.n; e += block.width) {
        const U element = tile.memory.element[e];
        const uint32_t from = tile.memory.index[e], to = base[digit_of(element, order, shift)] + e;
        const int64_t at = place.at[1] + int64_t(to) * axis.stride[1];
        if (next) next[at] = element;
        if (next_index) next_index[at] = from;
        if (indices) indices[at] = from;
      }
      __syncthreads();
    }
  });
}
}  // namespace
#endif

#define SORT(suffix, U)                                                                                        \
  KERNEL(256, sort_short_##suffix)                                                                             \
  (const U* x, U* values, int64_t* indices, gpu::ReductionPlan how, gpu::Order order) {                        \
    sort_short<U>(x, {values, indices}, how, order);                                                           \
  }                                                                                                            \
  KERNEL(256, sort_block_##suffix)                                                                             \
  (const U* x, const uint32_t* from, U* values, int64_t* indices, gpu::ReductionPlan how, gpu::Order order,    \
   uint32_t first) {                                                                                           \
    sort_block<U>(x, from, {values, indices}, how, order, first);                                              \
  }                                                                                                            \
  KERNEL(256, sort_count_##suffix)                                                                             \
  (const U* x, uint32_t* counts, gpu::ReductionPlan how, gpu::Order order, uint32_t shift) {                   \
    sort_count(x, counts, how, order, shift);                                                                  \
  }                                                                                                            \
  KERNEL(256, sort_move_##suffix)                                                                              \
  (const U* x, const uint32_t* index, U* next, uint32_t* next_index, int64_t* indices, const uint32_t* counts, \
   const uint32_t* totals, gpu::ReductionPlan how, gpu::Order order, uint32_t shift) {                         \
    sort_move(x, index, next, next_index, indices, counts, totals, how, order, shift);                         \
  }
DVT_UNSIGNED(SORT)

// uint8: the whole row is sorted.
#define SELECT(suffix, U)                                                                                \
  KERNEL(256, sort_select_##suffix)                                                                      \
  (const U* x, U* values, uint32_t* indices, gpu::ReductionPlan how, gpu::Order order, uint32_t first) { \
    select_first(x, values, indices, how, order, first);                                                 \
  }
SELECT(u16, uint16_t)
SELECT(u32, uint32_t)
SELECT(u64, uint64_t)

KERNEL(256, sort_starts)(uint32_t* counts, uint32_t* totals, uint64_t rows, uint64_t parts) {
  find_starts(counts, totals, rows, parts);
}
