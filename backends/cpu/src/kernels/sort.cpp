// sort, argsort along one axis: stable, NaN last, zeros of both signs equal. Elements become unsigned keys in the
// wanted order; short lines are sorted by insertion, long ones by their bytes, lowest first.
#include <atomic>

#include "scratch.hpp"
#include "simd/half.hpp"
#include "simd/lines.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <size_t bytes>
using Unsigned = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

enum class Kind { unsigned_int, signed_int, floating };

// Elements to keys: a < b as keys where a comes first. `infinity`: the bits of +inf, for floats.
template <class U>
void make_key(Kind kind, U infinity, bool descending, U& bits) {
  constexpr U top = U(U(1) << (8 * sizeof(U) - 1));
  if (kind == Kind::floating) {
    const U magnitude = U(bits & U(~top));
    if (magnitude > infinity) {  // no other float has the key ~0, either way
      bits = U(~U(0));
      return;
    }
    bits = magnitude == 0 ? top : bits & top ? U(~bits) : U(bits | top);
  } else if (kind == Kind::signed_int) {
    bits = U(bits ^ top);
  }
  if (descending) bits = U(~bits);
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

// Returns where the sorted items are: `items` or `room`.
template <class U>
Item<U>* radix_sort(Item<U>* items, Item<U>* room, int64_t n) {
  uint32_t count[sizeof(U)][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (size_t b = 0; b < sizeof(U); ++b) ++count[b][items[i].key >> (8 * b) & 255];
  for (size_t b = 0; b < sizeof(U); ++b) {
    if (count[b][items[0].key >> (8 * b) & 255] == uint32_t(n)) continue;  // the same byte everywhere
    uint32_t start[256], sum = 0;
    for (int d = 0; d < 256; ++d) start[d] = sum, sum += count[b][d];
    for (int64_t i = 0; i < n; ++i) room[start[items[i].key >> (8 * b) & 255]++] = items[i];
    Item<U>* const sorted = room;
    room = items, items = sorted;
  }
  return items;
}

template <size_t bytes>
dvt_status sort_lines(const dvt_call* c, Kind kind, bool indices) {
  using U = Unsigned<bytes>;
  const dvt::Attrs a(c);
  const Lines lines(c->in[0], a.i64(0));
  if (uint64_t(lines.size) > 0xffffffffu)
    return DVT_FAIL(DVT_INVALID, "[sort] the axis is too long: expected at most %u elements, got %lld", 0xffffffffu,
                    static_cast<long long>(lines.size));
  const bool descending = a.boolean(1);
  const U infinity = c->in[0]->dtype.code == DVT_BFLOAT ? U(0x7f80)
                     : bytes == 2                       ? U(0x7c00)
                     : bytes == 4                       ? U(0x7f800000)
                                                        : U(uint64_t{0x7ff} << 52);
  const U* const x = dvt::data<const U>(c->in[0]);
  void* const out = c->out[0]->data;
  std::atomic<bool> complete{true};
  dvt::parallel_for(
      uint64_t(lines.count()), uint64_t(2048 / lines.size + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
        const int64_t n = lines.size;
        Item<U>* const items = static_cast<Item<U>*>(scratch(Scratch::kernel, size_t(2 * n) * sizeof(Item<U>)));
        if (!items) {
          complete.store(false, std::memory_order_relaxed);
          return;
        }
        for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
          const int64_t o = at / lines.inner, i = at % lines.inner, out_at = o * n * lines.inner + i;
          const U* const line = x + lines.offset(o, i);
          for (int64_t k = 0; k < n; ++k) {
            U bits = line[k * lines.stride];
            make_key(kind, infinity, descending, bits);
            items[k] = {bits, uint32_t(k)};
          }
          Item<U>* sorted = items;
          if (n <= 48) insertion_sort(items, n);
          else sorted = radix_sort(items, items + n, n);
          if (indices) {
            int64_t* const to = static_cast<int64_t*>(out) + out_at;
            for (int64_t k = 0; k < n; ++k) to[k * lines.inner] = sorted[k].index;
          } else {
            U* const to = static_cast<U*>(out) + out_at;
            for (int64_t k = 0; k < n; ++k) to[k * lines.inner] = line[int64_t(sorted[k].index) * lines.stride];
          }
        }
      });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <size_t bytes, Kind kind, bool indices>
dvt_status run(dvt_device*, const dvt_call* c) {
  return sort_lines<bytes>(c, kind, indices);
}

template <size_t bytes, Kind kind>
void add(Table& table, DLDataType type) {
  table.add(
      dvt::Row("dvt.sort", run<bytes, kind, false>).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
  table.add(dvt::Row("dvt.argsort", run<bytes, kind, true>)
                .in(type, DVT_O_STRIDED)
                .out(dvt::i64)
                .deterministic()
                .kernel());
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
