// Elementwise rows of vector functions. F::operator() takes and returns a vector; it is compiled once and
// also serves the last, partial vector of an array.
#pragma once
#include "simd/each.hpp"
#include "simd/elementwise.hpp"
#include "simd/math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::math {
// One vector of floats, in a register.
typedef float Floats __attribute__((vector_size(sizeof(V))));

// X is the vector type in which F computes: V, or Wide, which computes in double. An F with `at_once` also takes so
// many vectors.
template <class F, class X>
void vector_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  constexpr int64_t w = X::size();
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  int64_t i = 0;
  if constexpr (requires { F::at_once; }) {
    constexpr auto each = std::make_integer_sequence<int, F::at_once>();
    for (X v[F::at_once]; i + F::at_once * w <= n; i += F::at_once * w) {
      for_each_constant(
          [&]<int k>() __attribute__((always_inline)) { v[k].copy_from(x + i + k * w, stdx::element_aligned); },
          each);
      F()(v);
      for_each_constant([&]<int k>()
                            __attribute__((always_inline)) { v[k].copy_to(y + i + k * w, stdx::element_aligned); },
                        each);
    }
  }
  alignas(64) float part[w] = {};
  for (; i < n; i += w) {
    const bool partial = n - i < w;
    if (partial) std::memcpy(part, x + i, size_t(n - i) * sizeof(float));
    X v;
    v.copy_from(partial ? part : x + i, stdx::element_aligned);
    v = F()(v);
    v.copy_to(partial ? part : y + i, stdx::element_aligned);
    if (partial) std::memcpy(y + i, part, size_t(n - i) * sizeof(float));
  }
}
// The same on fp16 and bf16 in memory, converted in registers.
template <class F, class H>
void vector_stored_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  const H* x = static_cast<const H*>(in[0]);
  H* y = static_cast<H*>(out);
  H part[width] = {};
  for (int64_t i = 0; i < n; i += width) {
    const bool partial = n - i < width;
    if (partial) std::memcpy(part, x + i, size_t(n - i) * sizeof(H));
    const auto floats = load_floats<width>(partial ? part : x + i);
    store_floats<width>(bits<Floats>(F()(from_bits(floats))), partial ? part : y + i);
    if (partial) std::memcpy(y + i, part, size_t(n - i) * sizeof(H));
  }
}
template <class F, class X, Half half>
constexpr Loop stored_loop() {
  if constexpr (std::is_same_v<X, V>) return vector_stored_loop<F, HalfOf<half>>;
  else return nullptr;
}

template <class F, class X>
void vector_loop2(const void* const* in, const int64_t* step, void* out, int64_t n) {
  constexpr int64_t w = X::size();
  const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  alignas(64) float part_a[w] = {}, part_b[w] = {}, part[w];
  if (!step[0])
    for (float& value : part_a) value = *a;
  if (!step[1])
    for (float& value : part_b) value = *b;
  for (int64_t i = 0; i < n; i += w) {
    const bool partial = n - i < w;
    if (partial && step[0]) std::memcpy(part_a, a + i, size_t(n - i) * sizeof(float));
    if (partial && step[1]) std::memcpy(part_b, b + i, size_t(n - i) * sizeof(float));
    X u, v;
    u.copy_from(partial || !step[0] ? part_a : a + i, stdx::element_aligned);
    v.copy_from(partial || !step[1] ? part_b : b + i, stdx::element_aligned);
    u = F()(u, v);
    u.copy_to(partial ? part : y + i, stdx::element_aligned);
    if (partial) std::memcpy(y + i, part, size_t(n - i) * sizeof(float));
  }
}

template <class F, class X, class... Given>
Floats of_vector(Given... given) {
  constexpr int64_t w = X::size();
  alignas(64) float y[width];
  for (int64_t i = 0; i < width; i += w) {
    const auto part = [i](const Floats& x) {
      alignas(64) float all[width];
      std::memcpy(all, &x, sizeof x);
      X v;
      v.copy_from(all + i, stdx::element_aligned);
      return v;
    };
    F()(part(given)...).copy_to(y + i, stdx::element_aligned);
  }
  Floats result;
  std::memcpy(&result, y, sizeof result);
  return result;
}
template <auto function>
const void* address() {
  return reinterpret_cast<const void*>(function);
}

// While one lives, this thread rounds long double to 64 bits. Windows begins its threads with 53.
class ExtendedPrecision {
#if defined(_WIN32) && defined(__x86_64__)
 public:
  DOVETAIL_CPU_INLINE ExtendedPrecision() {
    __asm__ volatile("fnstcw %0" : "=m"(before_) : : "memory");
    const uint16_t extended = before_ | 0x300;
    __asm__ volatile("fldcw %0" : : "m"(extended) : "memory");
  }
  DOVETAIL_CPU_INLINE ~ExtendedPrecision() { __asm__ volatile("fldcw %0" : : "m"(before_) : "memory"); }
  ExtendedPrecision(const ExtendedPrecision&) = delete;

 private:
  uint16_t before_;
#endif
};

template <double (*f)(double)>
void scalar_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  [[maybe_unused]] const ExtendedPrecision precision{};
  const double* x = static_cast<const double*>(in[0]);
  double* y = static_cast<double*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
template <double (*f)(double, double)>
void scalar_loop2(const void* const* in, const int64_t* step, void* out, int64_t n) {
  [[maybe_unused]] const ExtendedPrecision precision{};
  const double *a = static_cast<const double*>(in[0]), *b = static_cast<const double*>(in[1]);
  double* y = static_cast<double*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i * step[0]], b[i * step[1]]);
}

constexpr uint32_t grain = 4096;  // these loops pay for a thread earlier than an addition
template <class F, class X = V>
inline constexpr Elementwise spec32{
    vector_loop<F, X>, 1, {4}, 4, false, Half::no, Half::no, grain, address<of_vector<F, X, Floats>>};
template <class F, Half half, class X = V>
inline constexpr Elementwise spec16{
    vector_loop<F, X>,        1, {2}, 2, false, half, half, grain, address<of_vector<F, X, Floats>>,
    stored_loop<F, X, half>()};
template <Loop loop>
inline constexpr Elementwise spec64{loop, 1, {8}, 8, false, Half::no, Half::no, grain};
template <class F, class X>
inline constexpr Elementwise spec32x2{
    vector_loop2<F, X>, 2, {4, 4}, 4, true, Half::no, Half::no, grain, address<of_vector<F, X, Floats, Floats>>};
template <class F, class X, Half half>
inline constexpr Elementwise spec16x2{
    vector_loop2<F, X>, 2, {2, 2}, 2, true, half, half, grain, address<of_vector<F, X, Floats, Floats>>};
template <Loop loop>
inline constexpr Elementwise spec64x2{loop, 2, {8, 8}, 8, true, Half::no, Half::no, grain};

// All four float types of a unary or binary op: fp16 and bf16 go through the float loop.
template <class F, class X, Loop loop64>
void add_unary(Table& t, const char* op) {
  add_elementwise(t, op, kernel<spec32<F, X>>, dvt::f32, dvt::f32);
  add_elementwise(t, op, kernel<spec64<loop64>>, dvt::f64, dvt::f64);
  add_elementwise(t, op, kernel<spec16<F, Half::f16, X>>, dvt::f16, dvt::f16);
  add_elementwise(t, op, kernel<spec16<F, Half::bf16, X>>, dvt::bf16, dvt::bf16);
}
template <class F, class X, Loop loop64>
void add_binary(Table& t, const char* op) {
  add_elementwise(t, op, kernel<spec32x2<F, X>>, dvt::f32, dvt::f32);
  add_elementwise(t, op, kernel<spec64x2<loop64>>, dvt::f64, dvt::f64);
  add_elementwise(t, op, kernel<spec16x2<F, X, Half::f16>>, dvt::f16, dvt::f16);
  add_elementwise(t, op, kernel<spec16x2<F, X, Half::bf16>>, dvt::bf16, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::math
