// Reductions over any axes of any strided tensor. The driver (reduce.cpp) orders the axes; the loops here get
// either rows of elements of one result, or columns of contiguous results.
//
// Sums are made of short runs that are added up in pairs, so their error does not grow with the number of
// terms. The grouping of the terms depends on the shape only, not on the number of threads.
#pragma once
#include <experimental/simd>

#include "kernel.hpp"
#include "loops.hpp"
#include "scratch.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction {
namespace stdx = std::experimental;
template <class T>
using V = stdx::native_simd<T>;

struct Axis {
  int64_t size, stride, out_stride;
};
// x's axes of size > 1, merged where possible. Reduced ones by descending stride, kept ones in their order.
struct Plan {
  int n_kept = 0, n_reduced = 0;
  Axis kept[DVT_MAX_NDIM + 1], reduced[DVT_MAX_NDIM + 1];
  int64_t results = 1, terms = 1;
  int column = -1;  // the kept axis that is contiguous in memory, if the reduced ones are not

  // The beginning of the at-th result in x and, by `out`, in the output; the column axis is not counted.
  int64_t kept_offset(int64_t at, int64_t& out) const;
  // The beginning of the r-th run of terms: over all reduced axes but the last `inner` ones.
  int64_t run_offset(int64_t r, int inner) const;
};
// axes: a bit mask. parts > 1: x has that many numbers per element (complex), each reduced separately.
Plan plan(const DLTensor* x, uint32_t axes, int parts = 1);
uint32_t axis_mask(const dvt_call* c, uint32_t attribute);

// ---- loops ------------------------------------------------------------------------------------------------------

template <class T>
struct Sum {
  using Type = T;
  static constexpr T identity = 0;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) { return a + b; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) { return T(a + b); }
};
template <class T>
struct Product {
  using Type = T;
  static constexpr T identity = 1;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) { return a * b; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) {
    if constexpr (sizeof(T) < 4) return T(uint32_t(a) * b);
    else return a * b;
  }
};
template <class T>
inline constexpr T lowest = T(-1) < T(0) ? T(uint64_t{1} << (8 * sizeof(T) - 1)) : T(0);
template <>
inline constexpr float lowest<float> = -__builtin_inff();
template <>
inline constexpr double lowest<double> = -__builtin_inf();
template <class T>
inline constexpr T highest = std::is_floating_point_v<T> ? -lowest<T> : T(~lowest<T>);
template <>
inline constexpr float highest<float> = __builtin_inff();
template <>
inline constexpr double highest<double> = __builtin_inf();

// NaN wins: it replaces the result, and nothing compares greater than it afterwards.
template <class T>
struct Max {
  using Type = T;
  static constexpr T identity = lowest<T>;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) {
    if constexpr (std::is_floating_point_v<T>) stdx::where(b > a || b != b, a) = b;
    else a = stdx::max(a, b);
    return a;
  }
  DOVETAIL_CPU_INLINE static V<T> combine_numbers(V<T> a, V<T> b) {  // one instruction: no NaN
    stdx::where(b > a, a) = b;
    return a;
  }
  DOVETAIL_CPU_INLINE static T combine_numbers(T a, T b) { return b > a ? b : a; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) { return (b > a) | (b != b) ? b : a; }
};
template <class T>
struct Min {
  using Type = T;
  static constexpr T identity = highest<T>;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) {
    if constexpr (std::is_floating_point_v<T>) stdx::where(b < a || b != b, a) = b;
    else a = stdx::min(a, b);
    return a;
  }
  DOVETAIL_CPU_INLINE static V<T> combine_numbers(V<T> a, V<T> b) {  // one instruction: no NaN
    stdx::where(b < a, a) = b;
    return a;
  }
  DOVETAIL_CPU_INLINE static T combine_numbers(T a, T b) { return b < a ? b : a; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) { return (b < a) | (b != b) ? b : a; }
};

// Op without care for NaN.
template <class Op>
struct OfNumbers : Op {
  DOVETAIL_CPU_INLINE static auto combine(auto a, auto b) { return Op::combine_numbers(a, b); }
};

// Conversions from memory to the accumulated type, and back.
template <class In, class T>
struct Load {
  DOVETAIL_CPU_INLINE static T one(In x) {
    if constexpr (std::is_same_v<In, f16> || std::is_same_v<In, bf16>) return widen(x);
    else return T(x);
  }
};
constexpr int64_t run_length = Reduction::run_length, column_block = 1024,
                  row_group = Reduction::Columns::rows_of_run;

// Combines numbers or vectors in pairs of equal weight: a binary counter.
template <class Op, class X>
class Pairs {
 public:
  DOVETAIL_CPU_INLINE void add(X x) {
    for (uint64_t i = count_++; i & 1; i >>= 1) x = Op::combine(stack_[--top_], x);
    stack_[top_++] = x;
  }
  DOVETAIL_CPU_INLINE X total() {
    X x = top_ ? stack_[--top_] : X(Op::identity);
    while (top_) x = Op::combine(stack_[--top_], x);
    return x;
  }

 private:
  X stack_[40];
  int top_ = 0;
  uint64_t count_ = 0;
};

// lane[0] = all 2 * w lanes, the second half into the first, and again. Steps of a fixed length become vectors,
// which pays for the many lanes of short elements.
template <class Op, int64_t w, class T>
DOVETAIL_CPU_INLINE void fold_halves(T* lane) {
  if constexpr (sizeof(T) == 8) {
    for (int64_t n = w; n; n /= 2)
      for (int64_t k = 0; k < n; ++k) lane[k] = Op::combine(lane[k], lane[k + n]);
  } else if constexpr (w > 0) {
    for (int64_t k = 0; k < w; ++k) lane[k] = Op::combine(lane[k], lane[k + w]);
    fold_halves<Op, w / 2>(lane);
  }
}

// The last `rest` of the n terms at x, in a vector.
template <class Op, class T = typename Op::Type>
DOVETAIL_CPU_INLINE V<T> rest_of_vector(const T* x, int64_t n, int64_t rest) {
  constexpr int64_t W = V<T>::size();
  V<T> all;
  if (n >= W) {
    all.copy_from(x + n - W, stdx::element_aligned);
    stdx::where(V<T>([](auto lane) { return T(lane); }) < T(W - rest), all) = V<T>(Op::identity);
  } else {
    T lane[W];
    for (int64_t q = 0; q < W; ++q) lane[q] = q < rest ? x[n - rest + q] : Op::identity;
    all.copy_from(lane, stdx::element_aligned);
  }
  return all;
}

// f(constant 0), f(constant 1), ...: arrays that f indexes by it are registers from the beginning, which they are
// not where the compiler unrolls a loop.
template <class F, int... c>
DOVETAIL_CPU_INLINE void for_each_constant(F f, std::integer_sequence<int, c...>) {
  (f.template operator()<c>(), ...);
}

// Contiguous terms by vectors: groups of eight chains of eight, the groups in pairs, the remainder in a last
// vector. `watch_nan`: returns false if there was one.
template <class Op, bool watch_nan = false, class T = typename Op::Type>
DOVETAIL_CPU_INLINE bool combine_vectors(const T* x, int64_t n, V<T>& total) {
  constexpr int64_t W = V<T>::size(), chains = 8, group = 8 * chains * W;
  constexpr auto each = std::make_integer_sequence<int, chains>();
  typename V<T>::mask_type nan(false);
  V<T> acc[chains], last;
  Pairs<Op, V<T>> pairs;
  for (int64_t i = 0; i < n; i += group) {
    const int64_t m = least(n - i, group);
    const T* at = x + i;
    int64_t left = m;
    for_each_constant([&]<int c>() __attribute__((always_inline)) { acc[c] = Op::identity; }, each);
    for (; left >= chains * W; left -= chains * W, at += chains * W)
      for_each_constant(
          [&]<int c>() __attribute__((always_inline)) {
            // Zen 3 itself prefetches within a page only. Where every vector is a line, hints cost more than they
            // bring: up to a third of the bandwidth of Zen 4's third level and memory.
            if constexpr (sizeof(V<T>) < 64 && c % 2 == 0) __builtin_prefetch(at + c * W + 2048 / sizeof(T));
            const V<T> u(at + c * W, stdx::element_aligned);
            acc[c] = Op::combine(acc[c], u);
            if constexpr (watch_nan && c % 2) nan = nan || stdx::isunordered(last, u);
            else last = u;
          },
          each);
    for_each_constant(
        [&]<int c>() __attribute__((always_inline)) {
          if (c + 1 == chains || left < (c + 1) * W) return;
          const V<T> u(at + c * W, stdx::element_aligned);
          acc[c] = Op::combine(acc[c], u);
          if constexpr (watch_nan) nan = nan || u != u;
        },
        each);
    if (const int64_t rest = left % W) {  // the last vector of the terms, without those that were in the one before
      const V<T> u = rest_of_vector<Op>(x, i + m, rest);
      acc[chains - 1] = Op::combine(acc[chains - 1], u);
      if constexpr (watch_nan) nan = nan || u != u;
    }
    for_each_constant([&]<int c>()
                          __attribute__((always_inline)) { acc[c] = Op::combine(acc[c], acc[c + chains / 2]); },
                      std::make_integer_sequence<int, chains / 2>());
    acc[0] = Op::combine(Op::combine(acc[0], acc[2]), Op::combine(acc[1], acc[3]));
    if (n > group) pairs.add(acc[0]);
  }
  total = n > group ? pairs.total() : acc[0];
  return !stdx::any_of(nan);
}

template <class Op, class T = typename Op::Type>
DOVETAIL_CPU_INLINE T combine_lanes(V<T> x) {
  constexpr int64_t W = V<T>::size();
  T lane[W];
  x.copy_to(lane, stdx::element_aligned);
  fold_halves<Op, W / 2>(lane);
  return lane[0];
}

template <class Op, class T = typename Op::Type>
[[gnu::noinline]] T combine_run(const T* x, int64_t n) {
  if (n <= 4) {
    if (n == 4) return Op::combine(Op::combine(x[0], x[1]), Op::combine(x[2], x[3]));
    T result = Op::identity;
    for (int64_t i = 0; i < n; ++i) result = Op::combine(result, x[i]);
    return result;
  }
  V<T> total;
  if constexpr (std::is_floating_point_v<T> && requires { Op::combine_numbers(total, total); })
    if (combine_vectors<OfNumbers<Op>, true>(x, n, total)) return combine_lanes<OfNumbers<Op>>(total);
  combine_vectors<Op>(x, n, total);
  return combine_lanes<Op>(total);
}

template <class In, class Op, class L = Load<In, typename Op::Type>>
struct Loops {
  using T = typename Op::Type;

  // n <= run_length terms, `stride` apart, as contiguous values of T.
  [[gnu::noinline]] static const T* fetch_converted(const In* x, int64_t stride, int64_t n, T* buffer) {
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) buffer[i] = L::one(x[i]);
    else if (stride == 2)  // vectors, as of a constant
      for (int64_t i = 0; i < n; ++i) buffer[i] = L::one(x[i * 2]);
    else
      for (int64_t i = 0; i < n; ++i) buffer[i] = L::one(x[i * stride]);
    return buffer;
  }
  DOVETAIL_CPU_INLINE static const T* fetch(const In* x, int64_t stride, int64_t n, T* buffer) {
    if constexpr (std::is_same_v<In, T>)
      if (stride == 1) return x;
    return fetch_converted(x, stride, n, buffer);
  }

  // All terms of one result.
  [[gnu::noinline]] static T rows(const Plan& p, const In* x) {
    if (!p.n_reduced) return Op::combine(Op::identity, L::one(*x));
    if (!p.terms) return Op::identity;
    T buffer[run_length];
    const Axis inner = p.reduced[p.n_reduced - 1];
    if (p.n_reduced == 1 && inner.size <= run_length)
      return combine_run<Op>(fetch(x, inner.stride, inner.size, buffer), inner.size);
    Pairs<Op, T> pairs;
    for (int64_t r = 0, n = p.terms / inner.size; r < n; ++r) {
      const In* row = x + p.run_offset(r, 1);
      for (int64_t i = 0; i < inner.size; i += run_length) {
        const int64_t m = inner.size - i < run_length ? inner.size - i : run_length;
        pairs.add(combine_run<Op>(fetch(row + i * inner.stride, inner.stride, m, buffer), m));
      }
    }
    return pairs.total();
  }

  // `columns` contiguous results, terms [r, r + n) of each, to out.
  [[gnu::noinline]] static void columns(const Plan& p, const In* x, int64_t columns, int64_t r, int64_t n, T* out) {
    if (n > row_group) {
      T right[column_block];
      const int64_t half = (n + 1) / 2;
      Loops::columns(p, x, columns, r, half, out);
      Loops::columns(p, x, columns, r + half, n - half, right);
      for (int64_t j = 0; j < columns; ++j) out[j] = Op::combine(out[j], right[j]);
      return;
    }
    const In* row[row_group];
    const Axis inner = p.n_reduced ? p.reduced[p.n_reduced - 1] : Axis{};
    for (int64_t i = 0; i < n; ++i)
      row[i] = x + (p.n_reduced == 1 ? (r + i) * inner.stride : p.run_offset(r + i, 0));
    if constexpr (!std::is_same_v<In, T> && !is_half_of_float) {
      for (int64_t k = 0; k < columns; ++k) out[k] = Op::identity;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < columns; ++k) out[k] = Op::combine(out[k], L::one(row[i][k]));
    } else {
      constexpr int chains = std::is_same_v<In, T> ? 4 : 1;
      int64_t j = 0;
      for (constexpr int64_t step = lines * int64_t(V<T>::size()); j + step <= columns; j += step)
        add_columns<chains>(row, j, n, out);
      for (; j < columns; ++j) {
        T acc[4] = {Op::identity, Op::identity, Op::identity, Op::identity};
        for (int64_t i = 0; i < n; ++i) acc[i % chains] = Op::combine(acc[i % chains], L::one(row[i][j]));
        out[j] = Op::combine(Op::combine(acc[0], acc[1]), Op::combine(acc[2], acc[3]));
      }
    }
  }

 private:
  static constexpr bool is_half_of_float =
      std::is_same_v<L, Load<In, T>> && std::is_same_v<T, float> && sizeof(In) == 2;
  // Vectors side by side: whole lines of the cache, as rows whose distance is a power of two evict each other's.
  static constexpr int lines = sizeof(In) < sizeof(T) ? 4 : sizeof(V<T>) < 64 ? 2 : 1;

  DOVETAIL_CPU_INLINE static V<T> load(const In* x) {
    if constexpr (std::is_same_v<In, T>) {
      return V<T>(x, stdx::element_aligned);
    } else {
      constexpr int W = V<T>::size();
      alignas(64) T lanes[W];
      store_floats<W>(load_floats<W>(x), lanes);
      return V<T>(lanes, stdx::vector_aligned);
    }
  }
  // Columns [j, j + lines vectors), each in `chains`.
  template <int chains>
  DOVETAIL_CPU_INLINE static void add_columns(const In* const* row, int64_t j, int64_t n, T* out) {
    constexpr int64_t W = V<T>::size();
    V<T> acc[chains][lines];
    for (auto& chain : acc)
      for (V<T>& a : chain) a = Op::identity;
    const auto add = [&](int c, const In* from) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int l = 0; l < lines; ++l) acc[c][l] = Op::combine(acc[c][l], load(from + l * W));
    };
    int64_t i = 0;
    for (; i + chains <= n; i += chains)
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c) add(c, row[i + c] + j);
    if constexpr (chains > 1)
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c)
        if (i + c < n) add(c, row[i + c] + j);
#pragma GCC unroll 4
    for (int l = 0; l < lines; ++l) {
      if constexpr (chains == 4)
        acc[0][l] = Op::combine(Op::combine(acc[0][l], acc[1][l]), Op::combine(acc[2][l], acc[3][l]));
      acc[0][l].copy_to(out + j + l * W, stdx::element_aligned);
    }
  }
};

// How a result is stored: mean divides, any and all give bool, fp16 and bf16 are narrowed.
template <class Out, class T>
DOVETAIL_CPU_INLINE void put(Out* out, T x, T divisor) {
  if constexpr (std::is_floating_point_v<T>) {
    if (divisor != 0) x /= divisor;
    if constexpr (std::is_same_v<Out, f16> || std::is_same_v<Out, bf16>) *out = narrow<Out>(x);
    else *out = Out(x);
  } else if constexpr (std::is_same_v<Out, bool>) {
    *reinterpret_cast<uint8_t*>(out) = x != 0;
  } else {
    *out = Out(x);
  }
}

// Results [begin, end) of a plan, in units of one result or of one block of columns.
template <class In, class Op, class Out, class L>
[[gnu::noinline]] void reduce_range(const Plan& p, const In* x, Out* out, typename Op::Type divisor, int64_t begin,
                                    int64_t end) {
  using T = typename Op::Type;
  using Loop = Loops<In, Op, L>;
  if (p.column < 0) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at;
      const In* from = x + p.kept_offset(i, at);
      put(out + at, Loop::rows(p, from), divisor);
    }
    return;
  }
  const Axis axis = p.kept[p.column];
  const int64_t blocks = (axis.size + column_block - 1) / column_block;
  for (int64_t i = begin; i < end; ++i) {
    int64_t at;
    const int64_t first = i % blocks * column_block;
    const int64_t n = axis.size - first < column_block ? axis.size - first : column_block;
    const In* from = x + p.kept_offset(i / blocks, at) + first;
    T total[column_block];
    Loop::columns(p, from, n, 0, p.terms, total);
    Out* to = out + at + first * axis.out_stride;
    for (int64_t j = 0; j < n; ++j) put(to + j * axis.out_stride, total[j], divisor);
  }
}
DOVETAIL_CPU_INLINE int64_t units(const Plan& p) {
  if (p.column < 0) return p.results;
  const int64_t size = p.kept[p.column].size;
  return p.results / size * ((size + column_block - 1) / column_block);
}

// Few units of many terms: chunks of the outermost reduced axis, which has `size` elements, become results of their
// own, combined afterwards.
constexpr int64_t worthwhile = 32768;  // terms worth waking a thread
DOVETAIL_CPU_INLINE int64_t chunks_of(int64_t results, int64_t units, int64_t terms, int64_t size) {
  const int64_t total = results * terms;
  if (total < 4 * worthwhile || units >= 16 || results > 65536) return 1;
  const int64_t n = total / worthwhile;
  return n < size ? (n < 64 ? n : 64) : size < 64 ? size : 64;
}
DOVETAIL_CPU_INLINE int64_t chunks(const Plan& p) {
  return p.n_reduced ? chunks_of(p.results, units(p), p.terms, p.reduced[0].size) : 1;
}

// The partial results of chunks, in pairs.
template <class Op, class Out, class T = typename Op::Type>
void join_chunks(const T* partial, int64_t chunks, int64_t results, Out* out, T divisor) {
  constexpr int64_t W = V<T>::size();
  int64_t i = 0;
  for (; i + W <= results; i += W) {
    Pairs<Op, V<T>> pairs;
    for (int64_t c = 0; c < chunks; ++c) pairs.add(V<T>(partial + c * results + i, stdx::element_aligned));
    T lane[W];
    pairs.total().copy_to(lane, stdx::element_aligned);
    for (int64_t q = 0; q < W; ++q) put(out + i + q, lane[q], divisor);
  }
  for (; i < results; ++i) {
    Pairs<Op, T> pairs;
    for (int64_t c = 0; c < chunks; ++c) pairs.add(partial[c * results + i]);
    put(out + i, pairs.total(), divisor);
  }
}

template <class In, class Op, class Out, class L = Load<In, typename Op::Type>>
dvt_status reduce(const Plan& p, const In* x, Out* out, typename Op::Type divisor = 0) {
  using T = typename Op::Type;
  const int64_t n = chunks(p);
  if (n == 1) {
    const int64_t count = units(p), per_unit = p.results * p.terms / (count ? count : 1) + 1;
    dvt::parallel_for(uint64_t(count), uint64_t(worthwhile / per_unit + 1),
                      [&](uint64_t begin, uint64_t end, uint32_t) {
                        reduce_range<In, Op, Out, L>(p, x, out, divisor, int64_t(begin), int64_t(end));
                      });
    return DVT_OK;
  }
  T* const partial = static_cast<T*>(scratch(Scratch::result, size_t(n * p.results) * sizeof(T)));
  if (!partial) return DVT_OOM;
  dvt::parallel_for(uint64_t(n), 1, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t chunk = int64_t(begin); chunk < int64_t(end); ++chunk) {
      Plan q = p;
      Axis& axis = q.reduced[0];
      const int64_t from = axis.size * chunk / n, to = axis.size * (chunk + 1) / n;
      q.terms = p.terms / axis.size * (to - from);
      axis.size = to - from;
      reduce_range<In, Op, T, L>(q, x + from * axis.stride, partial + chunk * p.results, T(0), 0, units(q));
    }
  });
  join_chunks<Op>(partial, n, p.results, out, divisor);
  return DVT_OK;
}

}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction
