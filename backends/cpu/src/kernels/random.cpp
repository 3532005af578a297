// random_bits: Philox4x32-10. Element i is word i % 4 of the block whose counter is offset + i / 4. normal:
// Box-Muller on pairs of words, in float32.
#include "simd/math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
constexpr int lanes = 16;  // blocks computed in parallel

struct Blocks {
  uint32_t word[4][lanes];
};

DOVETAIL_CPU_INLINE void philox(uint64_t counter, uint32_t key0, uint32_t key1, Blocks& b) {
  for (int i = 0; i < lanes; ++i) {
    b.word[0][i] = uint32_t(counter + uint64_t(i));
    b.word[1][i] = uint32_t((counter + uint64_t(i)) >> 32);
    b.word[2][i] = b.word[3][i] = 0;
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < lanes; ++i) {
      const uint64_t p = uint64_t{0xD2511F53} * b.word[0][i], q = uint64_t{0xCD9E8D57} * b.word[2][i];
      const uint32_t w0 = uint32_t(q >> 32) ^ b.word[1][i] ^ key0, w2 = uint32_t(p >> 32) ^ b.word[3][i] ^ key1;
      b.word[0][i] = w0, b.word[1][i] = uint32_t(q), b.word[2][i] = w2, b.word[3][i] = uint32_t(p);
    }
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
}

// f(blocks, first element, number of elements), a group of blocks at a time.
template <class F>
void for_each_group(const dvt_call* c, F f) {
  const uint32_t* key = dvt::data<const uint32_t>(c->in[0]);  // seed lo, hi, offset lo, hi
  const uint32_t key0 = key[0], key1 = key[1];
  const uint64_t offset = uint64_t{key[3]} << 32 | key[2], n = uint64_t(dvt::size(c->out[0]));
  constexpr uint64_t group = 4 * lanes;
  dvt::parallel_for((n + group - 1) / group, 256, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t g = begin; g < end; ++g) {
      Blocks b;
      philox(offset + g * lanes, key0, key1, b);
      f(b, g * group, n - g * group < group ? n - g * group : group);
    }
  });
}
template <class T>
DOVETAIL_CPU_INLINE void store(const T (&word)[4][lanes], uint64_t count, T* out) {
  if (count == 4 * lanes)
    for (uint64_t i = 0; i < 4 * lanes; ++i) out[i] = word[i % 4][i / 4];
  else
    for (uint64_t i = 0; i < count; ++i) out[i] = word[i % 4][i / 4];
}

dvt_status random_bits(dvt_device*, const dvt_call* c) {
  uint32_t* const out = dvt::data<uint32_t>(c->out[0]);
  for_each_group(c, [=](const Blocks& b, uint64_t first, uint64_t count) { store(b.word, count, out + first); });
  return DVT_OK;
}

using math::V;
// The sine and cosine of 2 pi x for x in [0, 1), multiples of 2^-24.
DOVETAIL_CPU_INLINE void sine_of_turn(V x, V& sine, V& cosine) {
  // Taylor's series, within an eighth of a turn
  static constexpr float s[] = {-41.3417022f, 81.6052493f, -76.7058598f, 42.0586939f};
  static constexpr float c[] = {-19.7392088f, 64.9393940f, -85.4568172f, 60.2446414f, -26.4262568f};
  constexpr float two_pi = 6.28318548f, rest = -1.74845553e-7f;
  const V quarter = math::stdx::nearbyint(x * 4), r = x - quarter * 0.25f, square = r * r;
  const V near_s = r * (rest + square * math::polynomial(square, s)) + r * two_pi,
          near_c = 1 + square * math::polynomial(square, c);
  const auto q = math::stdx::static_simd_cast<math::I>(quarter);
  const auto is_odd = math::stdx::static_simd_cast<V>(q & 1) != 0;
  const V first = math::select(is_odd, near_c, near_s), second = math::select(is_odd, near_s, near_c);
  // Negative in the second half of a turn, and in its middle half.
  sine = math::from_bits(math::bits<math::I>(first) ^ ((q & 2) << 30));
  cosine = math::from_bits(math::bits<math::I>(second) ^ (((q + 1) & 2) << 30));
}

DOVETAIL_CPU_INLINE void normal_of(const uint32_t* words, const uint32_t* angles, float* x, float* y) {
  using math::I;
  for (int i = 0; i < lanes; i += int(V::size())) {
    math::U u, w;
    u.copy_from(words + i, math::stdx::element_aligned), w.copy_from(angles + i, math::stdx::element_aligned);
    const auto fraction = [](math::U bits) {
      return math::stdx::static_simd_cast<V>(math::stdx::static_simd_cast<I>(bits)) * 0x1p-24f;
    };
    const V radius = math::stdx::sqrt(math::log(fraction((u >> 8) + 1)) * -2.0f);
    V sine, cosine;
    sine_of_turn(fraction(w >> 8), sine, cosine);
    (radius * cosine).copy_to(x + i, math::stdx::element_aligned);
    (radius * sine).copy_to(y + i, math::stdx::element_aligned);
  }
}

dvt_status normal(dvt_device*, const dvt_call* c) {
  float* const out = dvt::data<float>(c->out[0]);
  for_each_group(c, [=](const Blocks& b, uint64_t first, uint64_t count) {
    alignas(64) float x[4][lanes];
    normal_of(b.word[0], b.word[1], x[0], x[1]);
    normal_of(b.word[2], b.word[3], x[2], x[3]);
    store(x, count, out + first);
  });
  return DVT_OK;
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  t.add(dvt::Row("dvt.random_bits", random_bits).in(dvt::u32).out(dvt::u32).deterministic().kernel());
  t.add(dvt::Row("dvt.normal", normal).in(dvt::u32).out(dvt::f32).deterministic().kernel());
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
