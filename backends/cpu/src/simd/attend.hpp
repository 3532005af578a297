// The attention kernel: a block of queries iterates over ranges of keys with a running maximum and sum, so only one
// block of scores exists at a time. Which keys it iterates over, and what happens to the scores before their
// softmax, is a template parameter.
#pragma once
#include "simd/attention.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention {
// Turns the scores of one row into weights: s = exp(s * scale + mask - top), with the row's running top and
// sum. Masked elements stay masked even if the score is NaN. Returns the factor for the results so far.
template <class T>
[[gnu::noinline]] T weigh(T* s, int64_t n, int64_t padded, T scale, const T* mask, bool hides, T& top, T& sum) {
  constexpr int64_t W = width<T>;
  const T least = -T(__builtin_inf());
  V<T> most = top;
  for (int64_t j = 0; j < padded; j += W) {
    V<T> x = load(s + j) * scale;
    if (mask) {
      const V<T> added = load(mask + j);
      x += added;
      if (hides) stdx::where(added != T(0), x) = added;
    }
    x.copy_to(s + j, stdx::element_aligned);
    if (j + W > n) {  // the rest of the row stays masked
      for (int64_t i = j > n ? j : n; i < j + W; ++i) s[i] = least;
      x = load(s + j);
    }
    most = stdx::max(x, most);
  }
  const T greatest = horizontal_max(most);
  const auto usable = [](T m) { return m - m == 0 ? m : T(0); };
  const T before = usable(top), now = usable(greatest);
  V<T> total[2] = {};
  int64_t j = 0;
  for (; j + 2 * W <= padded; j += 2 * W)
    for (int k = 0; k < 2; ++k) {
      const V<T> e = rows::exp(load(s + j + k * W) - now);
      e.copy_to(s + j + k * W, stdx::element_aligned);
      total[k] += e;
    }
  for (; j < padded; j += W) {
    const V<T> e = rows::exp(load(s + j) - now);
    e.copy_to(s + j, stdx::element_aligned);
    total[0] += e;
  }
  const T factor = top == least ? T(0) : before == now ? T(1) : std::exp(before - now);
  top = greatest;
  sum = sum * factor + horizontal_sum(total[0] + total[1]);
  return factor;
}

// Scratch memory of one thread.
template <class T>
struct Workspace {
  T *queries, *keys, *values, *scores, *results, *mask, *top, *sum;
  bool complete;

  // For blocks of at most `most` queries.
  Workspace(const Problem& p, int64_t most, bool converts, bool pack_values) {
    constexpr int P = gemm::panel<T>;
    const int64_t rows = least(most, p.queries), columns = round_up(least(key_block, p.keys), P);
    const int64_t parts[] = {converts ? rows * p.size : 0,
                             columns * p.size,
                             pack_values ? columns * round_up(p.value_size, P) : 0,
                             rows * score_row<T>(columns),
                             rows * p.value_size,
                             columns,
                             rows,
                             rows};
    T** const targets[] = {&queries, &keys, &values, &scores, &results, &mask, &top, &sum};
    int64_t total = 0;
    for (int64_t n : parts) total += round_up(n, 16);
    T* at = static_cast<T*>(scratch(Scratch::kernel, size_t(total) * sizeof(T)));
    complete = at != nullptr;
    for (int i = 0; i < 8; ++i) *targets[i] = at, at += complete ? round_up(parts[i], 16) : 0;
  }
};

template <class In>
bool packs_values(const Problem& p) {
  return is_half<In> || p.v.column != 1 || p.value_size % gemm::panel<Computed<In>>;
}

// The queries of a block, in T and multiplied by `scale`.
template <class In, class T>
void read_queries(const Problem& p, const In* q, int64_t n, T scale, T* out) {
  for (int64_t i = 0; i < n; ++i, q += p.q.row, out += p.size) {
    if constexpr (is_half<In>) widened(q, p.q.column, p.size, out);
    else
      for (int64_t x = 0; x < p.size; ++x) out[x] = q[x * p.q.column];
    if (scale != 1)
      for (int64_t x = 0; x < p.size; ++x) out[x] *= scale;
  }
}

// The scores of so few queries that packing the keys would take longer. False: not so few.
template <class Keys, class In, class T>
bool scores_of_few(int64_t n, int64_t m, const Problem& p, const In* q, const In* k, T* scores, int64_t row) {
  if constexpr (Keys::scaled) return false;
  else return gemm::few_rows<In>({n, m, p.size, q, p.q.row, p.q.column, k, p.k.column, p.k.row, scores, row});
}

// Stores the results of queries [first, first + n), which are sums with weights whose sum is `sum`.
template <class In, class T>
void finish(const Problem& p, int64_t first, int64_t n, const T* top, const T* sums, T* results, int64_t row,
            In* out, T* logsumexp) {
  for (int64_t i = 0; i < n; ++i) {
    const T sum = sums[i], inverse = sum == 0 ? T(0) : 1 / sum;  // fully masked: 0
    T* const r = results + i * row;
    if (sum == 0)
      for (int64_t x = 0; x < p.value_size; ++x) r[x] = 0;
    for (int64_t x = 0; x < p.value_size; ++x) r[x] *= inverse;
    put_row(r, out + (first + i) * p.value_size, 1, p.value_size);
    if (!logsumexp) continue;
    const T largest = top[i] - top[i] == 0 ? top[i] : T(0);
    logsumexp[first + i] = sum == 0 ? -T(__builtin_inf()) : std::log(sum) + largest;
  }
}

// Queries [first, first + n) of one matrix. `keys` has
//   each(first, n, f): calls f(j, m) for ranges of at most key_block keys, in ascending order;
//   copy(scores, row, first, n, j, m): puts scores that exist there, and returns whether it did, else they are the
//     products;
//   change(scores, row, first, n, j, m): may change the scores of such a range, n rows of m;
//   seen(i, j, m): how many of the m scores of row i are not hidden behind the last that is seen;
//   scaled: whether scores are the products with the scale, as change() needs them.
// `logsumexp`: nullptr, or a place for each query of the matrix.
template <class In, class Keys>
void attend(const Problem& p, const Problem::Place& at, const Keys& keys, const Workspace<Computed<In>>& workspace,
            int64_t first, int64_t n, In* out, Computed<In>* logsumexp) {
  using T = Computed<In>;
  constexpr int P = gemm::panel<T>;
  const bool pack_values = packs_values<In>(p);
  const In* const q = reinterpret_cast<const In*>(p.q.data) + at.q + first * p.q.row;
  const In* const k = reinterpret_cast<const In*>(p.k.data) + at.k;
  const In* const v = reinterpret_cast<const In*>(p.v.data) + at.v;
  const T* a = reinterpret_cast<const T*>(q);
  int64_t a_row = p.q.row, a_column = p.q.column;
  if constexpr (is_half<In> || Keys::scaled) {
    read_queries(p, q, n, Keys::scaled ? T(p.scale) : T(1), workspace.queries);
    a = workspace.queries, a_row = p.size, a_column = 1;
  }
  const T scale = Keys::scaled ? T(1) : T(p.scale);
  for (int64_t i = 0; i < n; ++i) workspace.top[i] = -T(__builtin_inf()), workspace.sum[i] = 0;
  for (int64_t i = 0; i < n * p.value_size; ++i) workspace.results[i] = 0;
  bool continues = false;
  keys.each(first, n, [&](int64_t j, int64_t m) {
    const int64_t padded = round_up(m, width<T>), row = score_row<T>(m);
    const In* const some_keys = k + j * p.k.row;
    if (!keys.copy(workspace.scores, row, first, n, j, m) &&
        !scores_of_few<Keys>(n, m, p, q, some_keys, workspace.scores, row)) {
      gemm::pack(p.size, m, some_keys, p.k.column, p.k.row, P, workspace.keys);
      gemm::multiply<T>(n, m, p.size, a, a_row, a_column, {workspace.keys, p.size * P, P}, workspace.scores, row,
                        false);
    }
    keys.change(workspace.scores, row, first, n, j, m);
    if (p.one_mask()) read_mask(p, at.mask + j * p.mask.column, m, workspace.mask);
    for (int64_t x = m; x < padded; ++x) workspace.mask[x] = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t seen = keys.seen(first + i, j, m);
      T* const s = workspace.scores + i * row;
      if (seen <= 0) {
        for (int64_t x = 0; x < m; ++x) s[x] = 0;
        continue;
      }
      if (p.mask.data && !p.one_mask())
        read_mask(p, at.mask + (first + i) * p.mask.row + j * p.mask.column, m, workspace.mask);
      const T factor = weigh(s, seen, padded, scale, p.mask.data ? workspace.mask : nullptr, p.hides(),
                             workspace.top[i], workspace.sum[i]);
      if (factor != 1 && continues)
        for (int64_t x = 0; x < p.value_size; ++x) workspace.results[i * p.value_size + x] *= factor;
    }
    gemm::Panels<T> panels{reinterpret_cast<const T*>(v + j * p.v.row), P, p.v.row};
    if (is_half<In> || pack_values) {
      gemm::pack(m, p.value_size, v + j * p.v.row, p.v.row, p.v.column, P, workspace.values);
      panels = {workspace.values, m * P, P};
    }
    gemm::multiply<T>(n, p.value_size, m, workspace.scores, row, 1, panels, workspace.results, p.value_size,
                      continues);
    continues = true;
  });
  finish<In>(p, first, n, workspace.top, workspace.sum, workspace.results, p.value_size, out, logsumexp);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::attention
