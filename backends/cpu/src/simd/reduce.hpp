// Reductions over any axes of any strided tensor. The driver (reduce.cpp), compiled once for all types, orders the
// axes; the loops here get either rows of elements of one result, or columns of contiguous results.
// The grouping of the terms depends on the shape only, not on the number of threads.
#pragma once
#include "scratch.hpp"
#include "simd/combine.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction {
struct Axis {
  int64_t size, stride, out_stride;
};
// x's axes of size > 1, merged where possible. Reduced ones by descending stride, kept ones in their order.
struct Plan {
  int n_kept = 0, n_reduced = 0;
  Axis kept[DVT_MAX_NDIM + 1], reduced[DVT_MAX_NDIM + 1];
  int64_t results = 1, terms = 1;
  int column = -1;  // the kept axis that is contiguous in memory, if the reduced ones are not

  // What is computed at a time: a result or, of the column axis, a block of them. How many, and how many are worth
  // waking a thread.
  int64_t units() const;
  uint64_t grain() const;
  // The beginning of the at-th result in x and, by `out`, in the output; the column axis is not counted.
  int64_t kept_offset(int64_t at, int64_t& out) const;
  // The beginning of the r-th run of terms: over all reduced axes but the last `inner` ones.
  int64_t run_offset(int64_t r, int inner) const;
};
// axes: a bit mask. parts > 1: x has that many numbers per element (complex), each reduced separately.
Plan plan(const DLTensor* x, uint32_t axes, int parts = 1);
uint32_t axis_mask(const dvt_call* c, uint32_t attribute);

// What the driver calls for one operation. `results` are of the type in which terms are combined.
struct Kernels {
  size_t in_size, result_size, out_size;
  // The results of `count` rows, whose beginnings are `stride` apart.
  void (*rows)(const Plan&, const void* x, int64_t stride, int64_t count, void* results);
  // `columns` contiguous results, of n <= row_group rows.
  void (*columns)(const void* const* row, int64_t columns, int64_t n, void* results);
  // left[j] = left[j] combined with right[j]
  void (*combine)(void* left, const void* right, int64_t n);
  // out[i * stride] = results[i], divided by the divisor if that is not 0; the second one keeps the type.
  void (*store)(void* results, int64_t n, int64_t divisor, void* out, int64_t stride);
  void (*keep)(void* results, int64_t n, int64_t divisor, void* out, int64_t stride);
};
dvt_status reduce(const Plan&, const Kernels&, const void* x, void* out, int64_t divisor);
// In how many chunks of the outermost reduced axis, which has `size` elements, a few units of many terms are
// computed: results of their own, which are combined afterwards.
int64_t chunks_of(int64_t results, int64_t units, int64_t terms, int64_t size);

// ---- loops ------------------------------------------------------------------------------------------------------

// left[j] = left[j] combined with right[j]
template <class Op, class T = typename Op::Type>
[[gnu::noinline]] void combine_columns(T* left, const T* right, int64_t n) {
  DOVETAIL_CPU_INDEPENDENT for (int64_t j = 0; j < n; ++j) left[j] = Op::combine(left[j], right[j]);
}

// n <= run_length terms, `stride` apart, as contiguous values of T.
template <class In, class T, class L>
[[gnu::noinline]] const T* fetch_converted(const In* x, int64_t stride, int64_t n, T* buffer) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) buffer[i] = L::one(x[i]);
  else if (stride == 2)  // vectors, as of a constant
    for (int64_t i = 0; i < n; ++i) buffer[i] = L::one(x[i * 2]);
  else
    for (int64_t i = 0; i < n; ++i) buffer[i] = L::one(x[i * stride]);
  return buffer;
}

template <class In, class Op, class L = Load<In, typename Op::Type>>
struct Loops {
  using T = typename Op::Type;

  DOVETAIL_CPU_INLINE static const T* fetch(const In* x, int64_t stride, int64_t n, T* buffer) {
    if constexpr (std::is_same_v<In, T>)
      if (stride == 1) return x;
    return fetch_converted<In, T, L>(x, stride, n, buffer);
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

  // `columns` contiguous results, of n rows.
  static void columns(const void* const* rows, int64_t columns, int64_t n, T* out) {
    const In* row[row_group];
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<const In*>(rows[i]);
    if constexpr (std::is_same_v<In, T> || is_half_of_float)
      if (constexpr int64_t step = lines * int64_t(V<T>::size()); columns >= step) {
        for (int64_t j = 0; j < columns; j += step)  // the last step takes some of the one before again
          add_columns(row, least(j, columns - step), n, out);
        return;
      }
    if constexpr (std::is_same_v<In, T>) {
      for (int64_t j = 0; j < columns; ++j) {
        T acc[4] = {Op::identity, Op::identity, Op::identity, Op::identity};
        for (int64_t i = 0; i < n; ++i) acc[i % 4] = Op::combine(acc[i % 4], row[i][j]);
        out[j] = Op::combine(Op::combine(acc[0], acc[1]), Op::combine(acc[2], acc[3]));
      }
    } else {
      for (int64_t k = 0; k < columns; ++k) out[k] = Op::identity;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < columns; ++k) out[k] = Op::combine(out[k], L::one(row[i][k]));
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
  // Columns [j, j + lines vectors) of bf16. Two neighbours are read as 32 bits: the second is a float as it is,
  // with the bits of the first cleared.
  DOVETAIL_CPU_INLINE static void add_bf16_columns(const In* const* row, int64_t j, int64_t n, T* out) {
    constexpr int W = V<T>::size(), pairs = lines / 2;
    using Bits = typename VectorOf<W>::Bits;
    using Floats = typename VectorOf<W>::Floats;
    const auto combine = [](V<T>& a, const Bits& bits) __attribute__((always_inline)) {
      V<T> x;
      std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
      a = Op::combine(a, x);
    };
    V<T> first[pairs], second[pairs];
#pragma GCC unroll 4
    for (int l = 0; l < pairs; ++l) first[l] = second[l] = Op::identity;
    for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
      for (int l = 0; l < pairs; ++l) {
        Bits both;
        std::memcpy(&both, row[i] + j + l * 2 * W, sizeof both);
        combine(first[l], both << 16);
        combine(second[l], both & 0xFFFF0000);
      }
    for (int l = 0; l < pairs; ++l) {
      Floats a, b;
      std::memcpy(&a, &first[l], sizeof a);
      std::memcpy(&b, &second[l], sizeof b);
      interleave(a, b, out + j + l * 2 * W, std::make_integer_sequence<int, W>());
    }
  }
  template <class Floats, int... k>
  DOVETAIL_CPU_INLINE static void interleave(const Floats& a, const Floats& b, T* out,
                                             std::integer_sequence<int, k...>) {
    constexpr int W = sizeof...(k);
    store_floats<W>(__builtin_shufflevector(a, b, (k / 2 + k % 2 * W)...), out);
    store_floats<W>(__builtin_shufflevector(a, b, (W / 2 + k / 2 + k % 2 * W)...), out + W);
  }
  // Columns [j, j + lines vectors).
  DOVETAIL_CPU_INLINE static void add_columns(const In* const* row, int64_t j, int64_t n, T* out) {
    if constexpr (is_half_of_float && std::is_same_v<In, bf16>) add_bf16_columns(row, j, n, out);
    else add_columns_in_chains<std::is_same_v<In, T> ? 4 : 1>(row, j, n, out);
  }
  template <int chains>
  DOVETAIL_CPU_INLINE static void add_columns_in_chains(const In* const* row, int64_t j, int64_t n, T* out) {
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

// How a result is stored: fp16 and bf16 are narrowed, any and all give bool.
template <class Out, class T>
DOVETAIL_CPU_INLINE Out stored(T x) {
  if constexpr (std::is_same_v<Out, f16> || std::is_same_v<Out, bf16>) return narrow<Out>(x);
  else return Out(x);
}
// Results of mean alone have a divisor.
template <class Out, class T>
[[gnu::noinline]] void store_results(void* results, int64_t n, int64_t divisor, void* out, int64_t stride) {
  T* const from = static_cast<T*>(results);
  if constexpr (std::is_floating_point_v<T>)
    if (divisor)
      for (int64_t i = 0; i < n; ++i) from[i] /= T(divisor);
  Out* const to = static_cast<Out*>(out);
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = stored<Out>(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i * stride] = stored<Out>(from[i]);
}

template <class In, class Op, class L>
void reduce_rows(const Plan& p, const void* from, int64_t stride, int64_t count, void* out) {
  using T = typename Op::Type;
  constexpr int at_once = rows_at_once<T>;
  const In* const x = static_cast<const In*>(from);
  T* const results = static_cast<T*>(out);
  int64_t i = 0;
  if constexpr (std::is_same_v<In, T> && at_once > 1)
    if (p.n_reduced == 1 && p.reduced[0].stride == 1 && is_short_row<T>(p.terms))
      for (; i + at_once <= count; i += at_once) combine_rows<Op>(x + i * stride, stride, p.terms, results + i);
  for (; i < count; ++i) results[i] = Loops<In, Op, L>::rows(p, x + i * stride);
}
template <class In, class Op, class L>
void reduce_columns(const void* const* row, int64_t columns, int64_t n, void* results) {
  Loops<In, Op, L>::columns(row, columns, n, static_cast<typename Op::Type*>(results));
}
template <class Op, class T = typename Op::Type>
void combine_results(void* left, const void* right, int64_t n) {
  combine_columns<Op>(static_cast<T*>(left), static_cast<const T*>(right), n);
}

template <class In, class Op, class Out, class L, class T = typename Op::Type>
inline constexpr Kernels kernels_of{sizeof(In),
                                    sizeof(T),
                                    sizeof(Out),
                                    reduce_rows<In, Op, L>,
                                    reduce_columns<In, Op, L>,
                                    combine_results<Op>,
                                    store_results<Out, T>,
                                    store_results<T, T>};
template <class In, class Op, class Out, class L = Load<In, typename Op::Type>>
dvt_status reduce(const Plan& p, const In* x, Out* out, int64_t divisor = 0) {
  return reduce(p, kernels_of<In, Op, Out, L>, x, out, divisor);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction
