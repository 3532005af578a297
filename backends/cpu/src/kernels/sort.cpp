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

enum class Kind { unsigned_int, signed_int, floating };

// Elements to keys: a < b as keys if a comes first. `infinity`: the bits of +inf, for floats. Without branches.
template <class U>
U key_of(Kind kind, U infinity, bool descending, U bits) {
  constexpr U top = U(U(1) << (8 * sizeof(U) - 1));
  const U flip = descending ? U(~U(0)) : U(0);
  if (kind == Kind::unsigned_int) return U(bits ^ flip);
  if (kind == Kind::signed_int) return U(bits ^ top ^ flip);
  const U magnitude = U(bits & U(~top)), key = bits & top ? U(~bits) : U(bits | top);
  // No other float has the key ~0 in either order.
  return magnitude > infinity ? U(~U(0)) : U((magnitude == 0 ? top : key) ^ flip);
}

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

// Writes the first k of n items to `items`, in order. Items before the last of the best k so far are collected
// until the buffer is full; then the best k are selected and the others dropped. Linear in the number of items,
// whatever their order. `key_at(i)` is the key of item i; most blocks of keys have none that is collected.
template <class U, class Keys>
void select_first(Item<U>* items, int64_t n, int64_t k, Keys key_at) {
  constexpr int64_t block = 64;
  const int64_t capacity = least(n, k > block / 4 ? 4 * k : block);
  int64_t end = 0;
  for (; end < capacity; ++end) items[end] = {key_at(end), uint32_t(end)};
  const auto keep_best = [&] {
    std::nth_element(items, items + (k - 1), items + end, comes_first<U>);
    end = k;
    return items[k - 1].key;
  };
  U last = keep_best(), keys[block];
  for (int64_t begin = capacity; begin < n; begin += block) {
    const int64_t count = least(block, n - begin);
    if (count == block)
      for (int64_t i = 0; i < block; ++i) keys[i] = key_at(begin + i);
    else
      for (int64_t i = 0; i < block; ++i) keys[i] = i < count ? key_at(begin + i) : U(~U(0));
    U lowest = keys[0];
    for (int64_t i = 1; i < block; ++i) lowest = keys[i] < lowest ? keys[i] : lowest;
    if (lowest >= last) continue;  // of equal items the first wins
    for (int64_t i = 0; i < count; ++i) {
      if (keys[i] >= last) continue;
      items[end++] = {keys[i], uint32_t(begin + i)};
      if (end == capacity) last = keep_best();
    }
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

template <size_t bytes>
using Signed = std::conditional_t<bytes == 4, int32_t, int64_t>;

// What keys do not tell: such elements are written in their order in the row.
struct Ambiguous {
  bool zeros = false, nan = false;
};
template <class K, Kind kind>
void to_keys(const K* row, int64_t stride, int64_t n, bool descending, K infinity, K* keys, Ambiguous& found) {
  using U = std::make_unsigned_t<K>;
  constexpr K lowest = K(uint64_t{1} << (8 * sizeof(K) - 1));
  K zeros = 0, nan = 0;
  const auto make = [&](K x) {
    if constexpr (kind == Kind::floating) zeros |= x == lowest, nan |= (x & ~lowest) > infinity;
    const U key = key_of(kind, U(infinity), descending, U(x));
    return K(K(key) ^ lowest);  // the order of unsigned keys, of signed ones
  };
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) keys[i] = make(row[i]);
  else
    for (int64_t i = 0; i < n; ++i) keys[i] = make(row[i * stride]);
  found = {zeros != 0, nan != 0};
}
template <class K, Kind kind>
void from_keys(const K* keys, int64_t n, bool descending, K* out, int64_t step) {
  constexpr K lowest = K(uint64_t{1} << (8 * sizeof(K) - 1));
  const K flip = descending ? ~K(0) : K(0);
  const auto bits_of = [&](K key) {
    key ^= flip;
    if constexpr (kind == Kind::unsigned_int) return K(key ^ lowest);
    if constexpr (kind == Kind::floating) return key < 0 ? K(key ^ ~lowest) : key;
    return key;
  };
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) out[i] = bits_of(keys[i]);
  else
    for (int64_t i = 0; i < n; ++i) out[i * step] = bits_of(keys[i]);
}
// The key of the zeros.
template <class K>
K zero_key(bool descending) {
  return descending ? ~K(0) : K(0);
}
// `zero`: the number of keys below that of the zeros. NaN takes the end.
template <class K>
void restore(const K* row, int64_t stride, int64_t n, K infinity, int64_t zero, K* out, int64_t step) {
  constexpr K largest = RegisterSort<K>::largest;
  int64_t end = n;
  for (int64_t i = 0; i < n; ++i) end -= (row[i * stride] & largest) > infinity;
  for (int64_t i = 0; i < n; ++i) {
    const K bits = row[i * stride], magnitude = bits & largest;
    if (magnitude == 0) out[zero++ * step] = bits;
    else if (magnitude > infinity) out[end++ * step] = bits;
  }
}

// `keys` has room for twice the padded number of elements.
template <class K, Kind kind>
void sort_values(const K* row, int64_t stride, int64_t n, bool descending, K infinity, K* keys, K* out,
                 int64_t step) {
  const int64_t padded = round_up(n, VectorSort<K>::step);
  Ambiguous found;
  to_keys<K, kind>(row, stride, n, descending, infinity, keys, found);
  RegisterSort<K>::pad(keys + n, padded - n);
  const K* const sorted = VectorSort<K>::sort(keys, keys + padded, padded);
  from_keys<K, kind>(sorted, n, descending, out, step);
  if (!found.zeros && !found.nan) return;
  const K limit = zero_key<K>(descending);
  const int64_t zero = std::partition_point(sorted, sorted + n, [=](K key) { return key < limit; }) - sorted;
  restore(row, stride, n, infinity, zero, out, step);
}
// The same on all threads.
template <class K, Kind kind>
bool sort_long_row(const K* row, int64_t stride, int64_t n, int parts, bool descending, K infinity, K* out,
                   int64_t step) {
  ParallelSort<K> sort(n, parts);
  if (!sort.has_memory()) return false;
  std::atomic<bool> ambiguous{false};
  sort.sort_parts([&](int64_t begin, int64_t count, K* keys) {
    Ambiguous found;
    to_keys<K, kind>(row + begin * stride, stride, count, descending, infinity, keys, found);
    if (found.zeros || found.nan) ambiguous.store(true, std::memory_order_relaxed);
  });
  sort.merge([&](const K* keys, int64_t rank, int64_t count) {
    from_keys<K, kind>(keys, count, descending, out + rank * step, step);
  });
  if (ambiguous.load(std::memory_order_relaxed))
    restore(row, stride, n, infinity, sort.count_below(zero_key<K>(descending)), out, step);
  return true;
}

// ---- calls

// The parameters of a call: the first `count` of each row along `axis`.
struct Wanted {
  int64_t axis, count;
  bool descending;
  const DLTensor *values, *indices;  // nullptr: not requested
};

template <class U>
U infinity_of(const DLTensor* x) {
  return x->dtype.code == DVT_BFLOAT ? U(0x7f80)
         : sizeof(U) == 2            ? U(0x7c00)
         : sizeof(U) == 4            ? U(0x7f800000)
                                     : U(uint64_t{0x7ff} << 52);
}
// Rows whose elements are sorted with their indices.
template <size_t bytes, Kind kind>
class Indexed {
  using U = Unsigned<bytes>;

 public:
  Indexed(const DLTensor* x, const Wanted& wanted)
      : rows(x, wanted.axis),
        room(round_up(rows.size, pairs_at_once)),
        wanted_(wanted),
        infinity_(infinity_of<U>(x)) {}

  // `items` has room for twice `room`.
  void sort(int64_t at, Item<U>* items) const {
    const Row row = row_of(at);
    const Item<U>* sorted = items;
    if (!few()) {
      for (int64_t i = 0; i < rows.size; ++i) items[i] = item(row, i);
      sorted = sort_all(items, items + room, rows.size);
    } else {
      // In copies, which nothing that is stored can change.
      const auto first = [=, n = rows.size, k = wanted_.count, infinity = infinity_,
                          down = wanted_.descending](auto bits_of) {
        select_first(items, n, k, [=](int64_t i) { return key_of(kind, infinity, down, bits_of(i)); });
      };
      const U* const from = row.from;
      if (rows.stride == 1) first([=](int64_t i) { return from[i]; });
      else first([=, stride = rows.stride](int64_t i) { return from[i * stride]; });
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
      for (int64_t i = 0; i < count; ++i) pairs[i] = to_pair(item(row, begin + i));
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
  Item<U> item(const Row& row, int64_t i) const {
    return {key_of(kind, infinity_, wanted_.descending, row.from[i * rows.stride]), uint32_t(i)};
  }
  void write(const Row& row, int64_t i, uint32_t index) const {
    const int64_t to = row.to + i * rows.inner;
    if (wanted_.indices) dvt::data<int64_t>(wanted_.indices)[to] = index;
    if (wanted_.values) dvt::data<U>(wanted_.values)[to] = row.from[int64_t(index) * rows.stride];
  }

  const Wanted wanted_;
  const U infinity_;
};

template <size_t bytes, Kind kind>
dvt_status sort_rows(const DLTensor* x, const Wanted& wanted) {
  const Indexed<bytes, kind> rows(x, wanted);
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

template <size_t bytes, Kind kind>
dvt_status sort_values(const DLTensor* x, int64_t axis, bool descending, const DLTensor* out) {
  using K = Signed<bytes>;
  const AxisRows rows(x, axis);
  const int64_t n = rows.size, step = rows.inner, padded = round_up(n, VectorSort<K>::step);
  // Adjacent rows are sorted in copies, so that whole lines of the cache are read and written.
  const bool columns = step > 1 && rows.stride != 1 && n <= 1 << 16 && rows.inner_is_dense();
  const int64_t block = columns ? 64 / int64_t(bytes) : 1, blocks = divide_up(step, block);
  const K infinity = infinity_of<K>(x);
  if (const int parts = columns ? 1 : ParallelSort<K>::parts_of(n, rows.count()); parts > 1) {
    for (int64_t at = 0; at < rows.count(); ++at) {
      const int64_t o = at / step, i = at % step;
      K* const to = dvt::data<K>(out) + o * n * step + i;
      if (!sort_long_row<K, kind>(dvt::data<const K>(x) + rows.offset(o, i), rows.stride, n, parts, descending,
                                  infinity, to, step))
        return DVT_OOM;
    }
    return DVT_OK;
  }
  const auto sort = [&](const K* from, int64_t stride, K* keys, K* to, int64_t to_step) {
    sort_values<K, kind>(from, stride, n, descending, infinity, keys, to, to_step);
  };
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(rows.outer * blocks), uint64_t(4096 / (n * block) + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      auto* const keys = static_cast<K*>(scratch(Scratch::kernel, size_t(2 * padded) * sizeof(K)));
                      const size_t copied = columns ? size_t(2 * block * n) * sizeof(K) : 0;
                      K* const copy = static_cast<K*>(scratch(Scratch::operand_a, copied));
                      if (!keys || !copy) return complete.store(false, std::memory_order_relaxed);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t o = at / blocks, i = at % blocks * block, width = least(block, step - i);
                        const K* const from = dvt::data<const K>(x) + rows.offset(o, i);
                        K *const to = dvt::data<K>(out) + o * n * step + i, *const sorted = copy + block * n;
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

template <size_t bytes, Kind kind, bool indices>
dvt_status run(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  const int64_t axis = a.i64(0);
  const DLTensor* const out = c->out[0];
  if constexpr (!indices && bytes >= 4) return sort_values<bytes, kind>(c->in[0], axis, a.boolean(1), out);
  return sort_rows<bytes, kind>(
      c->in[0], {axis, out->shape[axis], a.boolean(1), indices ? nullptr : out, indices ? out : nullptr});
}

template <size_t bytes, Kind kind>
dvt_status run_top_k(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  return sort_rows<bytes, kind>(c->in[0], {a.i64(1), a.i64(0), a.is(2, "largest"), c->out[0], c->out[1]});
}

template <size_t bytes, Kind kind>
void add(Table& table, DLDataType type) {
  const auto add = [&](dvt::Row row) { table.add(row.deterministic().kernel()); };
  add(dvt::Row("dvt.sort", run<bytes, kind, false>).in(type, DVT_O_STRIDED).out(type));
  add(dvt::Row("dvt.argsort", run<bytes, kind, true>).in(type, DVT_O_STRIDED).out(dvt::i64));
  add(dvt::Row("dvt.top_k", run_top_k<bytes, kind>).in(type, DVT_O_STRIDED).out(type).out(dvt::i64));
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<4, Kind::floating>(table, dvt::f32);
  add<8, Kind::floating>(table, dvt::f64);
  add<2, Kind::floating>(table, dvt::f16);
  add<2, Kind::floating>(table, dvt::bf16);
  add<1, Kind::signed_int>(table, dvt::i8);
  add<2, Kind::signed_int>(table, dvt::i16);
  add<4, Kind::signed_int>(table, dvt::i32);
  add<8, Kind::signed_int>(table, dvt::i64);
  add<1, Kind::unsigned_int>(table, dvt::u8);
  add<2, Kind::unsigned_int>(table, dvt::u16);
  add<4, Kind::unsigned_int>(table, dvt::u32);
  add<8, Kind::unsigned_int>(table, dvt::u64);
  add<1, Kind::unsigned_int>(table, dvt::boolean);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
