// Products of few rows: each element of b is used a few times, so that the time is that of reading b.
#include "simd/gemm.hpp"
#include "simd/horizontal.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
namespace {
template <class In>
using Sums = Product<In, Accumulator<In>>;
template <class In>
DOVETAIL_CPU_INLINE void finish(const Sums<In>& p, int64_t i, int64_t j, Accumulator<In> sum) {
  p.c[i * p.c_row + j] = p.bias ? sum + load(p.bias[j]) : sum;
}

// b contiguous along k: dot products with four columns of b at a time.
template <int Rows, class In>
void dots(const Sums<In>& p, int64_t i) {
  using T = Accumulator<In>;
  constexpr int W = width<T>, N = 4;
  for (int64_t j = 0; j < p.n; j += N) {
    const In *a[Rows], *b[N];
    for (int r = 0; r < Rows; ++r) a[r] = p.a + (i + r) * p.a_row;
    for (int s = 0; s < N; ++s) b[s] = p.b + least(j + s, p.n - 1) * p.b_column;
    V<T> sum[Rows][N] = {};
    int64_t q = 0;
    for (; q + W <= p.k; q += W) {
      V<T> x[N];
#pragma GCC unroll 4
      for (int s = 0; s < N; ++s) x[s] = load_vector(b[s] + q);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const V<T> y = load_vector(a[r] + q);
#pragma GCC unroll 4
        for (int s = 0; s < N; ++s) sum[r][s] += y * x[s];
      }
    }
    constexpr int at_once = N < W ? N : W;
    T sums[Rows][N];
#pragma GCC unroll 16
    for (int i = 0; i < Rows * N; i += at_once) combine_horizontally<W, at_once>(sum[0] + i, sums[0] + i);
    for (int r = 0; r < Rows; ++r)
      for (int s = 0; s < N && j + s < p.n; ++s) {
        T all = sums[r][s];
        for (int64_t t = q; t < p.k; ++t) all += load(a[r][t]) * load(b[s][t]);
        finish<In>(p, i + r, j + s, all);
      }
  }
}

// b contiguous along n: its rows are read from one end to the other, four at a time, and added to sums that stay in
// the first cache. Runs of rows have sums of their own, for small rounding errors.
template <int Rows, class In>
void add_rows(const Sums<In>& p, int64_t i) {
  using T = Accumulator<In>;
  constexpr int W = width<T>, at_once = 4, run = 128, columns = int(16384 / sizeof(T)) / Rows;
  T sums[Rows][columns], all[Rows][columns];
  for (int64_t j = 0; j < p.n; j += columns) {
    const int64_t n = least(columns, p.n - j);
    std::memset(all, 0, sizeof all);
    for (int64_t begin = 0; begin < p.k; begin += run) {
      const int64_t end = least(p.k, begin + run);
      std::memset(sums, 0, sizeof sums);
      for (int64_t q = begin; q < end; q += at_once) {
        const In* b[at_once];
        T a[Rows][at_once];
        for (int s = 0; s < at_once; ++s) {
          b[s] = p.b + least(q + s, end - 1) * p.b_row + j;
          for (int r = 0; r < Rows; ++r)
            a[r][s] = q + s < end ? load(p.a[(i + r) * p.a_row + (q + s) * p.a_column]) : T(0);
        }
        const int whole = q + at_once <= end ? at_once : int(end - q);
        const int64_t next = q + 2 * at_once <= p.k ? at_once * p.b_row : 0;  // rows, in the second cache by then
        int64_t t = 0;
        if (whole == at_once)
          for (; t + W <= n; t += W) {
            V<T> x[at_once];
#pragma GCC unroll 4
            for (int s = 0; s < at_once; ++s)
              x[s] = load_vector(b[s] + t), __builtin_prefetch(b[s] + t + next, 0, 2);
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) {
              V<T> sum;
              std::memcpy(&sum, &sums[r][t], sizeof sum);
#pragma GCC unroll 4
              for (int s = 0; s < at_once; ++s) sum += a[r][s] * x[s];
              std::memcpy(&sums[r][t], &sum, sizeof sum);
            }
          }
        for (; t < n; ++t)
          for (int r = 0; r < Rows; ++r)
            for (int s = 0; s < whole; ++s) sums[r][t] += a[r][s] * load(b[s][t]);
      }
      for (int r = 0; r < Rows; ++r)
        for (int64_t t = 0; t < n; ++t) all[r][t] += sums[r][t];
    }
    for (int r = 0; r < Rows; ++r)
      for (int64_t t = 0; t < n; ++t) finish<In>(p, i + r, j + t, all[r][t]);
  }
}

template <class In>
void by_dots(const Sums<In>& p) {
  int64_t i = 0;
  for (; i + 4 <= p.m; i += 4) dots<4, In>(p, i);
  for (; i + 2 <= p.m; i += 2) dots<2, In>(p, i);
  for (; i < p.m; ++i) dots<1, In>(p, i);
}
template <class In>
void by_rows(const Sums<In>& p) {
  int64_t i = 0;
  for (; i + 2 <= p.m; i += 2) add_rows<2, In>(p, i);
  if (i < p.m) add_rows<1, In>(p, i);
}
}  // namespace

template <class In>
bool few_rows(const Sums<In>& p) {
  // What the second cache holds is read faster by tiles of registers.
  const bool streams = is_half<In> || p.k * p.all_n * int64_t(sizeof(In)) > 256 << 10;
  if (p.a_column == 1 && p.b_row == 1 && (p.all_m <= 4 || p.all_n <= 2)) return by_dots<In>(p), true;
  if (p.b_column == 1 && p.all_m <= 4 && p.all_n >= 8 * width<Accumulator<In>> && streams)
    return by_rows<In>(p), true;
  return false;
}

template bool few_rows<float>(const Sums<float>&);
template bool few_rows<double>(const Sums<double>&);
template bool few_rows<f16>(const Sums<f16>&);
template bool few_rows<bf16>(const Sums<bf16>&);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
