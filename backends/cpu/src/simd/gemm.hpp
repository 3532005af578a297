// Matrix products on the calling thread: any strides, any real type, accumulated in float, double or wrapping
// unsigned integers. `product` computes one tile of a caller's larger product; `multiply` and `pack` are its
// parts, for kernels that generate an operand (conv2d) or process the result further (attention).
#pragma once
#include <experimental/simd>
#include <type_traits>

#include "scratch.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
template <class T>
inline constexpr int width = int(std::experimental::native_simd<T>::size());
// The compiler's own vectors: a tile of std::simd takes several times as long to compile.
template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(width<T> * sizeof(T))));
};
template <class T>
using V = typename Vector<T>::type;

// The register tile: up to `tile_rows` rows of two vectors, a panel, or where `has_pairs` up to `pair_rows` rows of
// two panels side by side, which takes fewer instructions per product: threads that share a core share its decoder,
// too.
template <class T>
inline constexpr int panel = 2 * width<T>;
#if defined(__AVX512F__)
template <class T>
inline constexpr int tile_rows = std::is_floating_point_v<T> ? 14 : 6;
#else
template <class T>
inline constexpr int tile_rows = 6;
#endif

template <class T>
struct AccumulatorOf {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <>
struct AccumulatorOf<f16> {
  using type = float;
};
template <>
struct AccumulatorOf<bf16> {
  using type = float;
};
template <>
struct AccumulatorOf<float> {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T>
DOVETAIL_CPU_INLINE Accumulator<T> load(T x) {
  if constexpr (is_half<T>) return widen(x);
  else return Accumulator<T>(x);
}
template <class Out, class T>
DOVETAIL_CPU_INLINE Out store(T x) {
  if constexpr (is_half<Out>) return narrow<Out>(x);
  else return Out(x);
}
template <class In>
DOVETAIL_CPU_INLINE V<Accumulator<In>> load_vector(const In* from) {
  if constexpr (is_half<In>) {
    return load_floats<width<float>>(from);
  } else {
    static_assert(std::is_same_v<In, Accumulator<In>>);
    V<In> x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
}
template <class T>
DOVETAIL_CPU_INLINE void store_vector(const V<T>& x, T* to) {
  std::memcpy(to, &x, sizeof x);
}

template <class T>
inline constexpr bool has_pairs = std::is_floating_point_v<T> && sizeof(V<T>) == 64;
inline constexpr int pair_rows = 6;

// Sums over k are made of runs, of `longest_run` products at most, which have sums of their own: rounding errors
// then grow with the number of runs. A run of a panel of b fits in the first cache. All ways to compute a product
// have the same runs, and so the same bits.
template <class T>
inline constexpr int64_t longest_run = sizeof(V<T>) == 64 ? 192 : 256;
template <class T>
DOVETAIL_CPU_INLINE int64_t run_length(int64_t k) {
  const int64_t runs = (k + longest_run<T> - 1) / longest_run<T>;
  return runs ? (k + runs - 1) / runs : 1;
}

// B in panels of panel<T> columns: element (p, j) is at data[j / panel * stride + p * row + j % panel]. An
// incomplete last panel is padded: a whole vector is read.
template <class T>
struct Panels {
  const T* data;
  int64_t stride, row;
};

// B whose row p begins at data + offset[p]: windows of an image. Whole vectors are read, the last one, too.
template <class T>
struct Shifted {
  const T* data;
  const int64_t* offset;
};

// c[m, n] = a[m, k] b[k, n], or += where `add`; then += bias[m].
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Panels<T>& b,
              T* c, int64_t c_row, bool add);
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Shifted<T>& b,
              T* c, int64_t c_row, bool add, const T* bias = nullptr);
// Rows of memory.
struct Rectangle {
  const char* at;
  int64_t stride, rows, bytes;
};
// sums[pixel][output of a panel] = the sum over k of x[offset[p] + pixel] weights[p][output], or += where `add`;
// then
// += bias[output]. x is the windows of an image, and weights what `pack` makes of up to a panel's outputs. One run.
// Meanwhile the lines of `soon` are brought into the caches.
template <class T>
void add_pixels(int64_t pixels, int64_t k, const T* x, const int64_t* offset, const T* weights, int64_t outputs,
                T* sums, bool add, const T* bias, const Rectangle& soon);

// out[j / width][p][j % width] = in[p * row + j * column], missing columns zero. Makes the panels of B and,
// with `width` rows, the blocks of A.
template <class In>
void pack(int64_t k, int64_t n, const In* in, int64_t row, int64_t column, int width, Accumulator<In>* out);
// The same rows of all panels of B, which are `stride` apart.
template <class T>
void pack_some(int64_t k, int64_t n, const T* in, int64_t row, int64_t column, int64_t stride, T* out);
inline int64_t packed_size(int64_t k, int64_t n, int width) { return (n + width - 1) / width * width * k; }

// c[m, n] = a[m, k] b[k, n] + bias[n], strides in elements. For a tile, all_m and all_n are the sizes of the whole
// product: they select how sums are made, so that bits do not depend on the number of threads.
template <class In, class Out = In>
struct Product {
  int64_t m, n, k;
  const In* a;
  int64_t a_row, a_column;
  const In* b;
  int64_t b_row, b_column;
  Out* c;
  int64_t c_row, c_column = 1;
  const In* bias = nullptr;
  const Accumulator<In>* panels = nullptr;  // of float32, float64: b as `pack` makes it, or nullptr
  int64_t all_m = m, all_n = n;
};
// False: out of memory for packed operands. The callers' tiles bound it: about 4 k (m + n) + m n
// accumulators.
template <class In, class Out>
bool product(const Product<In, Out>&);
// Its part for a few rows (few_rows.cpp), where the time is that of reading b. False: not such a product, or b is
// contiguous neither along k nor along n.
template <class In>
bool few_rows(const Product<In, Accumulator<In>>&);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
