// sort, argsort, top_k along one axis: stable, NaN last, zeros of both signs equal. Elements become unsigned
// keys in the requested order. With the elements' indices, short rows are sorted by vectors and long ones by bytes;
// values alone of 4 or 8 bytes are sorted by vectors.
#include <algorithm>
#include <atomic>
#include <functional>

#include "scratch.hpp"
#include "simd/axis_rows.hpp"
#include "simd/half.hpp"
#include "simd/parallel_sort.hpp"
#include "simd/transpose.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <size_t bytes>
using Unsigned = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

constexpr int64_t block_of_keys = 64;

// What keys do not tell: such elements are written in their order in the row.
struct Ambiguous {
  bool zeros, nan;
};
// Makes keys of elements: a < b as keys if a comes first.
template <class U>
class Order {
  static constexpr U top = U(U(1) << (8 * sizeof(U) - 1));

 public:
  // `as_signed`: keys are compared as signed numbers.
  Order(DLDataType type, bool descending, bool as_signed)
      : floating_(type.code == DVT_FLOAT || type.code == DVT_BFLOAT),
        infinity_(type.code == DVT_BFLOAT ? U(0x7f80)
                  : sizeof(U) == 2        ? U(0x7c00)
                  : sizeof(U) == 4        ? U(0x7f800000)
                                          : U(uint64_t{0x7ff} << 52)),
        nan_(U(as_signed ? ~top : ~U(0))),
        flip_(U((descending ? U(~U(0)) : U(0)) ^ (as_signed != (type.code == DVT_INT) ? top : U(0)))) {}

  // Of both zeros.
  U zero() const { return U(top ^ flip_); }
  bool is_nan(U bits) const { return U(bits & U(~top)) > infinity_; }
  bool is_zero(U bits) const { return U(bits & U(~top)) == 0; }

  [[gnu::noinline]] Ambiguous to_keys(const U* from, int64_t stride, int64_t n, U* keys) const {
    return floating_ ? make_keys<true>(from, stride, n, keys) : make_keys<false>(from, stride, n, keys);
  }
  // Makes the keys of the first block of [begin, n) that has one below `last`, the others ~0. Returns where it
  // begins; at n or behind it: none has.
  [[gnu::noinline]] int64_t find_below(U last, const U* from, int64_t stride, int64_t begin, int64_t n,
                                       U* keys) const {
    return floating_ ? find<true>(last, from, stride, begin, n, keys)
                     : find<false>(last, from, stride, begin, n, keys);
  }
  // The elements of keys, but for zeros and NaN.
  [[gnu::noinline]] void from_keys(const U* keys, int64_t n, U* to, int64_t step) const {
    if (floating_) make_elements<true>(keys, n, to, step);
    else make_elements<false>(keys, n, to, step);
  }

 private:
  template <bool floating>
  DOVETAIL_CPU_INLINE Ambiguous make_keys(const U* from, int64_t stride, int64_t n, U* keys) const {
    U zeros = 0, nan = 0;
    // In copies, which nothing that is stored can change; without branches.
    const auto key = [&, infinity = infinity_, no_number = nan_, flip = flip_](U bits) {
      if constexpr (!floating) return U(bits ^ flip);
      const U magnitude = U(bits & U(~top)), key = bits & top ? U(~bits) : U(bits | top);
      zeros |= bits == top, nan |= magnitude > infinity;
      // No other float has the last key in either order.
      return magnitude > infinity ? no_number : U((magnitude == 0 ? top : key) ^ flip);
    };
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) keys[i] = key(from[i]);
    else
      for (int64_t i = 0; i < n; ++i) keys[i] = key(from[i * stride]);
    return {zeros != 0, nan != 0};
  }
  template <bool floating>
  int64_t find(U last, const U* from, int64_t stride, int64_t begin, int64_t n, U* __restrict keys) const {
    constexpr int64_t block = block_of_keys;
    for (; begin < n; begin += block) {
      const int64_t count = least(block, n - begin);
      if (stride == 1 && count == block) make_keys<floating>(from + begin, 1, block, keys);
      else to_keys(from + begin * stride, stride, count, keys);
      for (int64_t i = count; i < block; ++i) keys[i] = U(~U(0));
      U lowest = U(~U(0));
      for (int64_t i = 0; i < block; ++i) lowest = keys[i] < lowest ? keys[i] : lowest;
      if (lowest < last) break;
    }
    return begin;
  }
  template <bool floating>
  void make_elements(const U* keys, int64_t n, U* to, int64_t step) const {
    const auto element = [flip = flip_](U key) {
      key ^= flip;
      if constexpr (floating) return key & top ? U(key ^ top) : U(~key);
      return key;
    };
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = element(keys[i]);
    else
      for (int64_t i = 0; i < n; ++i) to[i * step] = element(keys[i]);
  }

  bool floating_;
  U infinity_, nan_, flip_;  // flip_: the bits that are reversed
};

template <class U>
struct Item {
  U key;
  uint32_t index;
};

template <class U>
void insertion_sort(Item<U>* items, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Item<U> item = items[i];
    int64_t j = i;
    for (; j && items[j - 1].key > item.key; --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

// Returns `items` or `buffer`: where the sorted items are.
template <class U>
Item<U>* radix_sort(Item<U>* items, Item<U>* buffer, int64_t n) {
  uint32_t count[sizeof(U)][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (size_t b = 0; b < sizeof(U); ++b) ++count[b][items[i].key >> (8 * b) & 255];
  for (size_t b = 0; b < sizeof(U); ++b) {
    if (count[b][items[0].key >> (8 * b) & 255] == uint32_t(n)) continue;  // all have the same byte
    uint32_t start[256], sum = 0;
    for (int d = 0; d < 256; ++d) start[d] = sum, sum += count[b][d];
    for (int64_t i = 0; i < n; ++i) buffer[start[items[i].key >> (8 * b) & 255]++] = items[i];
    Item<U>* const sorted = buffer;
    buffer = items, items = sorted;
  }
  return items;
}

template <class U>
bool comes_first(const Item<U>& a, const Item<U>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

// Writes the first k of n elements, `stride` apart, to `items`, in order. Items before the last of the best k so
// far are collected until the buffer is full; then the best k are selected and the others dropped. Linear in the
// number of items, whatever their order; most blocks of keys have none that is collected.
template <class U>
void select_first(Item<U>* items, int64_t n, int64_t k, const Order<U>& order, const U* from, int64_t stride) {
  constexpr int64_t block = block_of_keys;
  const int64_t capacity = least(n, k > block / 4 ? 4 * k : block);
  U keys[block];
  int64_t end = 0;
  while (end < capacity) {
    const int64_t count = least(block, capacity - end);
    order.to_keys(from + end * stride, stride, count, keys);
    for (int64_t i = 0; i < count; ++i, ++end) items[end] = {keys[i], uint32_t(end)};
  }
  const auto keep_best = [&] {
    std::nth_element(items, items + (k - 1), items + end, comes_first<U>);
    end = k;
    return items[k - 1].key;
  };
  U last = keep_best();
  int64_t begin = capacity;
  while ((begin = order.find_below(last, from, stride, begin, n, keys)) < n) {
    for (int64_t i = 0; i < block; ++i) {
      if (keys[i] >= last) continue;  // of equal items the first wins
      items[end++] = {keys[i], uint32_t(begin + i)};
      if (end == capacity) last = keep_best();
    }
    begin += block;
  }
  keep_best();
  std::sort(items, items + k, comes_first<U>);
}

// Keys and indices as one number: equal keys stay in order.
template <class U>
int64_t to_pair(const Item<U>& item) {
  return int64_t((uint64_t{item.key} << 32 | item.index) ^ uint64_t{1} << 63);
}
template <class U>
Item<U> from_pair(int64_t pair) {
  return {U(uint64_t(pair ^ INT64_MIN) >> 32), uint32_t(pair)};
}
// Both arrays have room for `padded` items.
constexpr int64_t pairs_at_once = 64;
template <class U>
Item<U>* sort_pairs(Item<U>* items, Item<U>* buffer, int64_t n) {
  static_assert(sizeof(Item<U>) == sizeof(int64_t) && pairs_at_once % VectorSort<int64_t>::step == 0);
  int64_t *const pairs = reinterpret_cast<int64_t*>(buffer), *const other = reinterpret_cast<int64_t*>(items);
  const int64_t padded = round_up(n, pairs_at_once);
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t pair = i < n ? to_pair(items[i]) : INT64_MAX;
    std::memcpy(pairs + i, &pair, sizeof pair);
  }
  int64_t* const sorted = VectorSort<int64_t>::sort(pairs, other, padded);
  Item<U>* const made = reinterpret_cast<Item<U>*>(sorted);
  for (int64_t i = 0; i < n; ++i) {
    int64_t pair;
    std::memcpy(&pair, sorted + i, sizeof pair);
    const Item<U> item = from_pair<U>(pair);
    std::memcpy(made + i, &item, sizeof item);
  }
  return made;
}

// Returns `items` or `buffer`, where the sorted items are.
template <class U>
Item<U>* sort_all(Item<U>* items, Item<U>* buffer, int64_t n) {
  if (n <= (sizeof(U) <= 4 ? 12 : 48)) insertion_sort(items, n);
  else if constexpr (sizeof(U) <= 4)
    return n <= 1 << 14 ? sort_pairs(items, buffer, n) : radix_sort(items, buffer, n);
  else return radix_sort(items, buffer, n);
  return items;
}

// ---- values alone: equal keys are equal bits, but for zeros of both signs and for NaN

// `zero`: the number of keys below that of the zeros. NaN takes the end.
template <class U>
void restore(const U* row, int64_t stride, int64_t n, const Order<U>& order, int64_t zero, U* out, int64_t step) {
  int64_t end = n;
  for (int64_t i = 0; i < n; ++i) end -= order.is_nan(row[i * stride]);
  for (int64_t i = 0; i < n; ++i) {
    const U bits = row[i * stride];
    if (order.is_zero(bits)) out[zero++ * step] = bits;
    else if (order.is_nan(bits)) out[end++ * step] = bits;
  }
}

// `keys` has room for twice the padded number of elements.
template <class U, class K = std::make_signed_t<U>>
void sort_values(const U* row, int64_t stride, int64_t n, const Order<U>& order, U* keys, U* out, int64_t step) {
  const int64_t padded = round_up(n, VectorSort<K>::step);
  const Ambiguous found = order.to_keys(row, stride, n, keys);
  K* const begin = reinterpret_cast<K*>(keys);
  RegisterSort<K>::pad(begin + n, padded - n);
  const K* const sorted = VectorSort<K>::sort(begin, begin + padded, padded);
  order.from_keys(reinterpret_cast<const U*>(sorted), n, out, step);
  if (!found.zeros && !found.nan) return;
  const K limit = K(order.zero());
  const int64_t zero = std::partition_point(sorted, sorted + n, [=](K key) { return key < limit; }) - sorted;
  restore(row, stride, n, order, zero, out, step);
}
// The same on all threads.
template <class U, class K = std::make_signed_t<U>>
bool sort_long_row(const U* row, int64_t stride, int64_t n, int parts, const Order<U>& order, U* out,
                   int64_t step) {
  ParallelSort<K> sort(n, parts);
  if (!sort.has_memory()) return false;
  std::atomic<bool> ambiguous{false};
  sort.sort_parts([&](int64_t begin, int64_t count, K* keys) {
    const Ambiguous found = order.to_keys(row + begin * stride, stride, count, reinterpret_cast<U*>(keys));
    if (found.zeros || found.nan) ambiguous.store(true, std::memory_order_relaxed);
  });
  sort.merge([&](const K* keys, int64_t rank, int64_t count) {
    order.from_keys(reinterpret_cast<const U*>(keys), count, out + rank * step, step);
  });
  if (ambiguous.load(std::memory_order_relaxed))
    restore(row, stride, n, order, sort.count_below(K(order.zero())), out, step);
  return true;
}

// ---- calls

// The parameters of a call: the first `count` of each row along `axis`.
struct Wanted {
  int64_t axis, count;
  bool descending;
  const DLTensor *values, *indices;  // nullptr: not requested
};

// Rows whose elements are sorted with their indices.
template <size_t bytes>
class Indexed {
  using U = Unsigned<bytes>;

 public:
  Indexed(const DLTensor* x, const Wanted& wanted)
      : rows(x, wanted.axis),
        room(round_up(rows.size, pairs_at_once)),
        wanted_(wanted),
        order_(x->dtype, wanted.descending, false) {}

  // `items` has room for twice `room`.
  void sort(int64_t at, Item<U>* items) const {
    const Row row = row_of(at);
    const Item<U>* sorted = items;
    if (few()) {
      select_first(items, rows.size, wanted_.count, order_, row.from, rows.stride);
    } else {
      each_key(row, 0, rows.size, [=](U key, int64_t i) { items[i] = {key, uint32_t(i)}; });
      sorted = sort_all(items, items + room, rows.size);
    }
    for (int64_t i = 0; i < wanted_.count; ++i) write(row, i, sorted[i].index);
  }
  // How many threads should share each row.
  int parts() const { return bytes > 4 || few() ? 1 : ParallelSort<int64_t>::parts_of(rows.size, rows.count()); }
  bool sort_on_threads(int64_t at, int parts) const {
    ParallelSort<int64_t> sort(rows.size, parts);
    if (!sort.has_memory()) return false;
    const Row row = row_of(at);
    sort.sort_parts([&](int64_t begin, int64_t count, int64_t* pairs) {
      each_key(row, begin, count, [=](U key, int64_t i) { pairs[i - begin] = to_pair<U>({key, uint32_t(i)}); });
    });
    sort.merge([&](const int64_t* pairs, int64_t rank, int64_t count) {
      for (int64_t i = rank; i < least(rank + count, wanted_.count); ++i) write(row, i, uint32_t(pairs[i - rank]));
    });
    return true;
  }

  const AxisRows rows;
  const int64_t room;  // for the items of a row

 private:
  struct Row {
    const U* from;
    int64_t to;  // where it begins in the outputs
  };
  Row row_of(int64_t at) const {
    const int64_t o = at / rows.inner, i = at % rows.inner;
    return {dvt::data<const U>(rows.x) + rows.offset(o, i), o * wanted_.count * rows.inner + i};
  }
  bool few() const { return wanted_.count && wanted_.count <= rows.size / 64; }
  // f(key, i) for the elements [begin, begin + n) of a row.
  template <class F>
  void each_key(const Row& row, int64_t begin, int64_t n, F f) const {
    U keys[block_of_keys];
    for (int64_t at = begin; at < begin + n; at += block_of_keys) {
      const int64_t count = least(block_of_keys, begin + n - at);
      order_.to_keys(row.from + at * rows.stride, rows.stride, count, keys);
      for (int64_t i = 0; i < count; ++i) f(keys[i], at + i);
    }
  }
  void write(const Row& row, int64_t i, uint32_t index) const {
    const int64_t to = row.to + i * rows.inner;
    if (wanted_.indices) dvt::data<int64_t>(wanted_.indices)[to] = index;
    if (wanted_.values) dvt::data<U>(wanted_.values)[to] = row.from[int64_t(index) * rows.stride];
  }

  const Wanted wanted_;
  const Order<U> order_;
};

template <size_t bytes>
dvt_status sort_rows(const DLTensor* x, const Wanted& wanted) {
  const Indexed<bytes> rows(x, wanted);
  const int64_t n = rows.rows.size, count = rows.rows.count();
  if (uint64_t(n) > 0xffffffffu)
    return DVT_FAIL(DVT_INVALID, "[sort] the axis is too long: expected at most %u elements, got %lld", 0xffffffffu,
                    static_cast<long long>(n));
  if constexpr (bytes <= 4)
    if (const int parts = rows.parts(); parts > 1) {
      for (int64_t at = 0; at < count; ++at)
        if (!rows.sort_on_threads(at, parts)) return DVT_OOM;
      return DVT_OK;
    }
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(count), uint64_t(2048 / n + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
    using I = Item<Unsigned<bytes>>;
    auto* const items = static_cast<I*>(scratch(Scratch::kernel, size_t(2 * rows.room) * sizeof(I)));
    if (!items) return complete.store(false, std::memory_order_relaxed);
    for (int64_t at = int64_t(begin); at < int64_t(end); ++at) rows.sort(at, items);
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <size_t bytes>
dvt_status sort_values(const DLTensor* x, int64_t axis, bool descending, const DLTensor* out) {
  using U = Unsigned<bytes>;
  using K = std::make_signed_t<U>;
  const AxisRows rows(x, axis);
  const int64_t n = rows.size, step = rows.inner, padded = round_up(n, VectorSort<K>::step);
  // Adjacent rows are sorted in copies, so that whole lines of the cache are read and written.
  const bool columns = step > 1 && rows.stride != 1 && n <= 1 << 16 && rows.inner_is_dense();
  const int64_t block = columns ? 64 / int64_t(bytes) : 1, blocks = divide_up(step, block);
  const Order<U> order(x->dtype, descending, true);
  if (const int parts = columns ? 1 : ParallelSort<K>::parts_of(n, rows.count()); parts > 1) {
    for (int64_t at = 0; at < rows.count(); ++at) {
      const int64_t o = at / step, i = at % step;
      U* const to = dvt::data<U>(out) + o * n * step + i;
      if (!sort_long_row(dvt::data<const U>(x) + rows.offset(o, i), rows.stride, n, parts, order, to, step))
        return DVT_OOM;
    }
    return DVT_OK;
  }
  const auto sort = [&](const U* from, int64_t stride, U* keys, U* to, int64_t to_step) {
    sort_values(from, stride, n, order, keys, to, to_step);
  };
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(rows.outer * blocks), uint64_t(4096 / (n * block) + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      auto* const keys = static_cast<U*>(scratch(Scratch::kernel, size_t(2 * padded) * sizeof(U)));
                      const size_t copied = columns ? size_t(2 * block * n) * sizeof(U) : 0;
                      U* const copy = static_cast<U*>(scratch(Scratch::operand_a, copied));
                      if (!keys || !copy) return complete.store(false, std::memory_order_relaxed);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t o = at / blocks, i = at % blocks * block, width = least(block, step - i);
                        const U* const from = dvt::data<const U>(x) + rows.offset(o, i);
                        U *const to = dvt::data<U>(out) + o * n * step + i, *const sorted = copy + block * n;
                        if (!columns) {
                          sort(from, rows.stride, keys, to, step);
                          continue;
                        }
                        transpose(n, width, from, rows.stride, copy, n, std::identity());
                        for (int64_t r = 0; r < width; ++r) sort(copy + r * n, 1, keys, sorted + r * n, 1);
                        transpose(width, n, sorted, n, to, step, std::identity());
                      }
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <size_t bytes, bool indices>
dvt_status run(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  const int64_t axis = a.i64(0);
  const DLTensor* const out = c->out[0];
  if constexpr (!indices && bytes >= 4) return sort_values<bytes>(c->in[0], axis, a.boolean(1), out);
  return sort_rows<bytes>(c->in[0],
                          {axis, out->shape[axis], a.boolean(1), indices ? nullptr : out, indices ? out : nullptr});
}

template <size_t bytes>
dvt_status run_top_k(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  return sort_rows<bytes>(c->in[0], {a.i64(1), a.i64(0), a.is(2, "largest"), c->out[0], c->out[1]});
}

template <size_t bytes>
void add(Table& table, DLDataType type) {
  const auto add = [&](dvt::Row row) { table.add(row.deterministic().kernel()); };
  add(dvt::Row("dvt.sort", run<bytes, false>).in(type, DVT_O_STRIDED).out(type));
  add(dvt::Row("dvt.argsort", run<bytes, true>).in(type, DVT_O_STRIDED).out(dvt::i64));
  add(dvt::Row("dvt.top_k", run_top_k<bytes>).in(type, DVT_O_STRIDED).out(type).out(dvt::i64));
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  for (DLDataType t : {dvt::i8, dvt::u8, dvt::boolean}) add<1>(table, t);
  for (DLDataType t : {dvt::f16, dvt::bf16, dvt::i16, dvt::u16}) add<2>(table, t);
  for (DLDataType t : {dvt::f32, dvt::i32, dvt::u32}) add<4>(table, t);
  for (DLDataType t : {dvt::f64, dvt::i64, dvt::u64}) add<8>(table, t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
