// Reductions over any axes of any strided tensor. The driver (reduce.cpp) orders the axes; the loops here get
// either rows of elements of one result, or columns of contiguous results.
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

  // The beginning of the at-th result in x and, by `out`, in the output; the column axis is not counted.
  int64_t kept_offset(int64_t at, int64_t& out) const;
  // The beginning of the r-th run of terms: over all reduced axes but the last `inner` ones.
  int64_t run_offset(int64_t r, int inner) const;
};
// axes: a bit mask. parts > 1: x has that many numbers per element (complex), each reduced separately.
Plan plan(const DLTensor* x, uint32_t axes, int parts = 1);
uint32_t axis_mask(const dvt_call* c, uint32_t attribute);

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

  // `columns` contiguous results, terms [r, r + n) of each, to out.
  [[gnu::noinline]] static void columns(const Plan& p, const In* x, int64_t columns, int64_t r, int64_t n, T* out) {
    if (n > row_group) {
      T right[column_block];
      const int64_t half = (n + 1) / 2;
      Loops::columns(p, x, columns, r, half, out);
      Loops::columns(p, x, columns, r + half, n - half, right);
      combine_columns<Op>(out, right, columns);
      return;
    }
    const In* row[row_group];
    const Axis inner = p.n_reduced ? p.reduced[p.n_reduced - 1] : Axis{};
    for (int64_t i = 0; i < n; ++i)
      row[i] = x + (p.n_reduced == 1 ? (r + i) * inner.stride : p.run_offset(r + i, 0));
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

// Results of mean, which alone has a divisor.
template <class T>
DOVETAIL_CPU_INLINE void divide(T* results, int64_t n, T divisor) {
  if constexpr (std::is_floating_point_v<T>)
    if (divisor != 0)
      for (int64_t i = 0; i < n; ++i) results[i] /= divisor;
}
// How a result is stored: any and all give bool, fp16 and bf16 are narrowed.
template <class Out, class T>
DOVETAIL_CPU_INLINE void put(Out* out, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (std::is_same_v<Out, f16> || std::is_same_v<Out, bf16>) *out = narrow<Out>(x);
    else *out = Out(x);
  } else if constexpr (std::is_same_v<Out, bool>) {
    *reinterpret_cast<uint8_t*>(out) = x != 0;
  } else {
    *out = Out(x);
  }
}

// The results of `count` rows of a plan without columns, those of its last kept axis.
template <class In, class Op, class Out, class L>
DOVETAIL_CPU_INLINE void reduce_rows(const Plan& p, const Axis& axis, const In* x, int64_t count, Out* out,
                                     typename Op::Type divisor) {
  using T = typename Op::Type;
  constexpr int at_once = rows_at_once<T>;
  T results[at_once];
  const auto store = [&](int n) __attribute__((always_inline)) {
    divide(results, n, divisor);
    for (int k = 0; k < n; ++k) put(out + k * axis.out_stride, results[k]);
    out += n * axis.out_stride;
  };
  int64_t i = 0;
  if constexpr (std::is_same_v<In, T> && at_once > 1)
    for (const bool contiguous = p.n_reduced == 1 && p.reduced[0].stride == 1;
         contiguous && is_short_row<T>(p.terms) && i + at_once <= count; i += at_once) {
      combine_rows<Op>(x + i * axis.stride, axis.stride, p.terms, results);
      store(at_once);
    }
  for (; i < count; ++i) {
    results[0] = Loops<In, Op, L>::rows(p, x + i * axis.stride);
    store(1);
  }
}

// Results [begin, end) of a plan, in units of one result or of one block of columns.
template <class In, class Op, class Out, class L>
[[gnu::noinline]] void reduce_range(const Plan& p, const In* x, Out* out, typename Op::Type divisor, int64_t begin,
                                    int64_t end) {
  using T = typename Op::Type;
  using Loop = Loops<In, Op, L>;
  if (p.column < 0) {
    const Axis last = p.n_kept ? p.kept[p.n_kept - 1] : Axis{1, 0, 0};
    for (int64_t i = begin, n; i < end; i += n) {
      int64_t at;
      const In* const from = x + p.kept_offset(i, at);
      n = least(end - i, last.size - i % last.size);
      reduce_rows<In, Op, Out, L>(p, last, from, n, out + at, divisor);
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
    divide(total, n, divisor);
    for (int64_t j = 0; j < n; ++j) put(to + j * axis.out_stride, total[j]);
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

// The partial results of chunks in pairs, these in pairs, and so on, in the memory of the first ones.
template <class Op, class Out, class T = typename Op::Type>
void join_chunks(T* partial, int64_t chunks, int64_t results, Out* out, T divisor) {
  constexpr int64_t block = 256;  // results whose partial ones stay in the first caches
  for (int64_t first = 0; first < results; first += block) {
    const int64_t n = least(block, results - first);
    T* const total = partial + first;
    for (int64_t step = 1; step < chunks; step *= 2)
      for (int64_t c = 0; c + step < chunks; c += 2 * step)
        combine_columns<Op>(total + c * results, total + (c + step) * results, n);
    divide(total, n, divisor);
    for (int64_t j = 0; j < n; ++j) put(out + first + j, total[j]);
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
