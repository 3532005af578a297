// astype from and to dtypes that are only stored: floats of 8 bits without arithmetic, and elements that share
// bytes, of which the first has the lowest bits. By way of the dtype that holds their values; a float64 is rounded
// once.
#include <algorithm>
#include <type_traits>

#include "kernel.hpp"
#include "simd/float8.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
constexpr uint64_t kBlock = 4096;  // elements

struct Integer {
  static uint8_t made(uint8_t x) { return x; }
};
template <int bits>
struct Signed : Integer {
  static int8_t read(uint8_t code) { return int8_t(int8_t(code << (8 - bits)) >> (8 - bits)); }
};
struct Unsigned : Integer {
  static uint8_t read(uint8_t code) { return code; }
};
template <uint8_t (*of)(uint32_t), uint32_t (*float32)(uint8_t)>
struct Float {
  static uint8_t made(float x) { return of(bit_cast<uint32_t>(x)); }
  static uint8_t made(double x) { return made(to_odd(x)); }
  static float read(uint8_t code) { return bit_cast<float>(float32(code)); }
};

// Codes of some bits, as bytes, from and to their place in bytes: a word has the codes of one byte.
template <int bits>
struct Packing {
  using Word = std::conditional_t<bits == 4, uint16_t, std::conditional_t<bits == 2, uint32_t, uint8_t>>;
  static constexpr uint64_t each = 8 / bits;
  static constexpr Word mask = Word(0x01010101u * ((1u << bits) - 1));

  static Word spread(uint8_t byte) {
    uint32_t word = byte;
    for (uint32_t k = 1; k < each; ++k) word |= uint32_t(byte) << (8 - bits) * k;
    return Word(word & mask);
  }
  static uint8_t joined(Word word) {
    uint32_t byte = word & mask;
    for (uint32_t k = 1; k < each; ++k) byte |= uint32_t(word & mask) >> (8 - bits) * k;
    return uint8_t(byte);
  }
};

// block(begin, n): elements that begin with a byte; the last ones may leave bits of theirs.
template <class Body>
void in_blocks(uint64_t n, Body block) {
  dvt::parallel_for((n + kBlock - 1) / kBlock, 8, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) block(i * kBlock, std::min(kBlock, n - i * kBlock));
  });
}

// `bits` of each element; X is what it is read as.
template <int bits, class Format, class X>
dvt_status read(dvt_device*, const dvt_call* c) {
  using P = Packing<bits>;
  const uint8_t* in = dvt::data<uint8_t>(c->in[0]);
  X* out = dvt::data<X>(c->out[0]);
  in_blocks(dvt::size(c->out[0]), [=](uint64_t begin, uint64_t n) {
    alignas(64) typename P::Word words[kBlock / P::each];
    const uint8_t* const from = in + begin / P::each;
    X* const to = out + begin;
    for (uint64_t i = 0; i < (n + P::each - 1) / P::each; ++i) words[i] = P::spread(from[i]);
    const auto* codes = reinterpret_cast<const uint8_t*>(words);
    for (uint64_t i = 0; i < n; ++i) to[i] = Format::read(codes[i]);
  });
  return DVT_OK;
}

template <int bits, class Format, class X>
dvt_status make(dvt_device*, const dvt_call* c) {
  using P = Packing<bits>;
  const X* in = dvt::data<X>(c->in[0]);
  uint8_t* out = dvt::data<uint8_t>(c->out[0]);
  in_blocks(dvt::size(c->in[0]), [=](uint64_t begin, uint64_t n) {
    alignas(64) typename P::Word words[kBlock / P::each];
    auto* codes = reinterpret_cast<uint8_t*>(words);
    const X* const from = in + begin;
    uint8_t* const to = out + begin / P::each;
    for (uint64_t i = 0; i < n; ++i) codes[i] = Format::made(from[i]);
    const uint64_t bytes = (n + P::each - 1) / P::each;
    std::fill(codes + n, codes + bytes * P::each, uint8_t{0});
    for (uint64_t i = 0; i < bytes; ++i) to[i] = P::joined(words[i]);
  });
  return DVT_OK;
}

void add_row(Table& table, DLDataType from, DLDataType to, dvt::Row::Run run) {
  table.add(dvt::Row("dvt.astype", run).in(from).out(to).deterministic().kernel());
}
template <int bits, class Format, class X>
void add_integers(Table& table, DLDataType stored) {
  add_row(table, stored, dvt::dtype_of<X>(), read<bits, Format, X>);
  add_row(table, dvt::dtype_of<X>(), stored, make<bits, Format, X>);
}
template <int bits, class Format>
void add_floats(Table& table, DLDataType stored) {
  add_row(table, stored, dvt::f32, read<bits, Format, float>);
  add_row(table, dvt::f32, stored, make<bits, Format, float>);
  add_row(table, dvt::f64, stored, make<bits, Format, double>);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add_integers<4, Signed<4>, int8_t>(table, dvt::i4);
  add_integers<2, Signed<2>, int8_t>(table, dvt::i2);
  add_integers<4, Unsigned, uint8_t>(table, dvt::u4);
  add_integers<2, Unsigned, uint8_t>(table, dvt::u2);
  add_floats<4, Float<dvt::e2m1_of, dvt::float32_of_e2m1>>(table, dvt::f4e2m1fn);
  add_floats<8, Float<dvt::fnuz_of<3>, dvt::float32_of_fnuz<3>>>(table, dvt::f8e4m3fnuz);
  add_floats<8, Float<dvt::fnuz_of<2>, dvt::float32_of_fnuz<2>>>(table, dvt::f8e5m2fnuz);
  add_floats<8, Float<dvt::e8m0_of, dvt::float32_of_e8m0>>(table, dvt::f8e8m0fnu);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
