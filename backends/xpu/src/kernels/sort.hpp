// sort, argsort along one axis: operand 0 is x, operand 1 the result. Stable, NaN last, zeros of both signs equal.
// Elements become unsigned keys in the wanted order. A group sorts each part of a row; then pairs of sorted runs
// are merged until one is left.
#include "kernels/common/order.hpp"
#include "kernels/common/rows.hpp"
#include "kernels/common/types.hpp"

namespace {
// The place of element e of n after its run, of `run` elements, is merged with the adjacent run: behind that run's
// smaller elements, and, if e is of the second run, behind its equal ones too.
template <class U>
uint64_t merged_place(const U* keys, uint64_t n, uint64_t run, uint64_t e) {
  const uint64_t r = gpu::quotient(e, run), first = r * run, pair = (r & ~uint64_t(1)) * run;
  const bool second = r & 1;
  const U key = keys[e];
  const uint64_t begin = second ? pair : sycl::min(first + run, n);
  uint64_t low = begin, high = second ? first : sycl::min(first + 2 * run, n);
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (second ? keys[middle] <= key : keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return pair + (e - first) + (low - begin);
}

// Stores element e of a sorted row, which is element `index` of x: its index if `indices` is given, else its value.
template <class U>
void put(const U* x, U* values, int64_t* indices, const gpu::Place& place, const gpu::Axis& axis, uint64_t e,
         uint32_t index) {
  const int64_t to = place.at[1] + int64_t(e) * axis.stride[1];
  if (indices) indices[to] = index;
  else values[to] = x[place.at[0] + int64_t(index) * axis.stride[0]];
}

template <class U>
struct Tile {
  U keys[2][gpu::sort_tile];
  uint32_t index[2][gpu::sort_tile];
};

template <class U>
void sort_tiles(const U* x, U* values, int64_t* indices, U* keys, uint32_t* index, const gpu::ReductionPlan& how,
                const gpu::Order& order) {
  static sycl::ext::oneapi::experimental::work_group_static<Tile<U>> memory;
  Tile<U>& tile = memory;
  const gpu::Axis& axis = how.axis[how.kept];
  gpu::for_each_row(how,
                    [&](const gpu::Group& group, uint64_t row, const gpu::Place& place, const gpu::Part& part) {
                      const uint64_t n = part.end - part.begin;
                      gpu::for_each_index(group, 0, n, [&](uint64_t e) {
                        const uint64_t i = part.begin + e;
                        tile.keys[0][e] = gpu::make_key(x[place.at[0] + int64_t(i) * axis.stride[0]], order);
                        tile.index[0][e] = uint32_t(i);
                      });
                      group.barrier();
                      int now = 0;
                      for (uint64_t run = 1; run < n; run *= 2, now ^= 1) {
                        gpu::for_each_index(group, 0, n, [&](uint64_t e) {
                          const uint64_t to = merged_place(tile.keys[now], n, run, e);
                          tile.keys[now ^ 1][to] = tile.keys[now][e];
                          tile.index[now ^ 1][to] = tile.index[now][e];
                        });
                        group.barrier();
                      }
                      gpu::for_each_index(group, 0, n, [&](uint64_t e) {
                        const uint64_t at = row * how.size + part.begin + e;
                        if (how.parts == 1) put(x, values, indices, place, axis, e, tile.index[now][e]);
                        else keys[at] = tile.keys[now][e], index[at] = tile.index[now][e];
                      });
                      group.barrier();
                    });
}

template <class U>
void sort_merge(const U* keys, const uint32_t* index, U* merged_keys, uint32_t* merged_index, uint64_t rows,
                uint64_t n, uint64_t run) {
  gpu::for_each_item(rows * n, [&](size_t i) {
    const uint64_t row = gpu::quotient(i, n), first = row * n;
    const uint64_t to = first + merged_place(keys + first, n, run, i - first);
    merged_keys[to] = keys[i];
    merged_index[to] = index[i];
  });
}

template <class U>
void sort_put(const U* x, U* values, int64_t* indices, const uint32_t* index, const gpu::ReductionPlan& how) {
  gpu::for_each_item(how.count * how.size, [&](size_t i) {
    const uint64_t row = gpu::quotient(i, how.size);
    put(x, values, indices, gpu::locate(how.axis, 0, how.kept, row), how.axis[how.kept], i - row * how.size,
        index[i]);
  });
}
}  // namespace

#define SORT(suffix, U)                                                                                           \
  KERNEL(1, sort_tiles_##suffix)                                                                                  \
  (const U* x, U* values, int64_t* indices, U* keys, uint32_t* index, gpu::ReductionPlan how, gpu::Order order) { \
    sort_tiles(x, values, indices, keys, index, how, order);                                                      \
  }                                                                                                               \
  KERNEL(1, sort_merge_##suffix)                                                                                  \
  (const U* keys, const uint32_t* index, U* merged_keys, uint32_t* merged_index, uint64_t rows, uint64_t n,       \
   uint64_t run) {                                                                                                \
    sort_merge(keys, index, merged_keys, merged_index, rows, n, run);                                             \
  }                                                                                                               \
  KERNEL(1, sort_put_##suffix)(const U* x, U* values, int64_t* indices, const uint32_t* index,                    \
                               gpu::ReductionPlan how) {                                                          \
    sort_put(x, values, indices, index, how);                                                                     \
  }
DVT_UNSIGNED(SORT)
