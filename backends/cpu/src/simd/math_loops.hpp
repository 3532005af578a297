// Elementwise rows of vector functions. F::operator() takes and returns a vector. Loops are over whole vectors, so
// that constants stay in registers; the last, partial vector of an array is one more call, on a copy.
#pragma once
#include "simd/each.hpp"
#include "simd/elementwise.hpp"
#include "simd/math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::math {
// One vector of floats, in a register.
typedef float Floats __attribute__((vector_size(sizeof(V))));

// `loop` over n numbers, of which the last n % unit are padded.
template <auto loop, int64_t unit, class T>
DOVETAIL_CPU_INLINE void padded(const T* x, T* y, int64_t n) {
  const int64_t rest = n % unit, whole = n - rest;
  if (whole) loop(x, y, whole);
  if (!rest) return;
  alignas(64) T part[unit] = {};
  std::memcpy(part, x + whole, size_t(rest) * sizeof(T));
  loop(part, part, unit);
  std::memcpy(y + whole, part, size_t(rest) * sizeof(T));
}

// Elements of a kilobyte. Loops with vectors of whole lines bring what they need so much later: computing, they
// leave a large array's memory idle otherwise. Smaller vectors would ask for every line twice, and gain nothing.
template <class T>
constexpr int64_t ahead = 1024 / sizeof(T);

// T in memory; X is the vector type in which F computes: V, or D, which computes floats, too, in double. An F with
// `at_once` also takes so many vectors.
template <class F, class X, class T>
[[gnu::noinline]] void whole_vectors(const T* x, T* y, int64_t n) {
  constexpr int64_t w = X::size();
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
  for (; i < n; i += w) {
    if constexpr (w * sizeof(T) == 64)
      __builtin_prefetch(x + i + ahead<T>), __builtin_prefetch(y + i + ahead<T>, 1);
    F()(X(x + i, stdx::element_aligned)).copy_to(y + i, stdx::element_aligned);
  }
}
template <class F, class X, class T = float>
void vector_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  padded<whole_vectors<F, X, T>, X::size()>(static_cast<const T*>(in[0]), static_cast<T*>(out), n);
}

// The same on fp16 and bf16 in memory, converted in registers.
template <class F>
[[gnu::noinline]] void whole_vectors_of_halves(const f16* x, f16* y, int64_t n) {
  for (int64_t i = 0; i < n; i += width)
    store_floats<width>(bits<Floats>(F()(from_bits(load_floats<width>(x + i)))), y + i);
}
template <class F>
[[gnu::noinline]] void whole_vectors_of_halves(const bf16* x, bf16* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 2 * width) {
    const Bf16Pairs<width> pairs(x + i);
    Bf16Pairs<width>::store(bits<Floats>(F()(from_bits(pairs.even))), bits<Floats>(F()(from_bits(pairs.odd))),
                            y + i);
  }
}
template <class F, class H>
void vector_stored_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  constexpr void (*loop)(const H*, H*, int64_t) = whole_vectors_of_halves<F>;
  padded<loop, 2 * width>(static_cast<const H*>(in[0]), static_cast<H*>(out), n);
}
template <class F, class X, Half half>
constexpr Loop stored_loop() {
  if constexpr (std::is_same_v<X, V>) return vector_stored_loop<F, HalfOf<half>>;
  else return nullptr;
}

template <class F, class X, class T>
[[gnu::noinline]] void whole_vectors2(const T* a, const T* b, const int64_t* step, T* y, int64_t n) {
  constexpr int64_t w = X::size();
  const int64_t a_step = step[0], b_step = step[1];
  const X one_a = *a, one_b = *b;
  for (int64_t i = 0; i < n; i += w) {
    const X u = a_step ? X(a + i, stdx::element_aligned) : one_a;
    const X v = b_step ? X(b + i, stdx::element_aligned) : one_b;
    F()(u, v).copy_to(y + i, stdx::element_aligned);
  }
}
template <class F, class X, class T = float>
void vector_loop2(const void* const* in, const int64_t* step, void* out, int64_t n) {
  constexpr int64_t w = X::size();
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* const y = static_cast<T*>(out);
  const int64_t rest = n % w, whole = n - rest;
  if (whole) whole_vectors2<F, X, T>(a, b, step, y, whole);
  if (!rest) return;
  alignas(64) T parts[2][w] = {};
  std::memcpy(parts[0], a + step[0] * whole, size_t(step[0] ? rest : 1) * sizeof(T));
  std::memcpy(parts[1], b + step[1] * whole, size_t(step[1] ? rest : 1) * sizeof(T));
  whole_vectors2<F, X, T>(parts[0], parts[1], step, parts[0], w);
  std::memcpy(y + whole, parts[0], size_t(rest) * sizeof(T));
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

// Loops of float64: f of vectors of doubles.
using Doubles = stdx::native_simd<double>;
template <auto f>
struct OfDoubles {
  template <class... Given>
  DOVETAIL_CPU_INLINE Doubles operator()(Given... x) const {
    return f(x...);
  }
};
template <Doubles (*f)(Doubles)>
constexpr Loop loop64 = vector_loop<OfDoubles<f>, Doubles, double>;
template <Doubles (*f)(Doubles, Doubles)>
constexpr Loop loop64x2 = vector_loop2<OfDoubles<f>, Doubles, double>;

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
