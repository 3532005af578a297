// scaled_dot_product_attention_grad: for each key head, blocks of keys, and for each of these the blocks of its
// queries. One block of weights exists at a time, computed again from the scores; the sums over blocks are made in
// the results, of fp16 and bf16 in floats beside them.
#include <atomic>

#include "simd/attention.hpp"
#include "temporary.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace attention;

// What one thread works with: blocks of operands in the layouts that products take, weights and their gradients.
template <class T>
struct Workspace {
  T *keys_across, *values_across, *keys, *queries, *grads, *wide_queries, *wide_grads, *weights, *by_scores, *mask;
  bool complete;

  Workspace(const Problem& p, bool widens) {
    constexpr int P = gemm::panel<T>;
    const int64_t rows = least(query_block, p.queries), columns = round_up(least(key_block, p.keys), P);
    const int64_t size = round_up(p.size, P), value_size = round_up(p.value_size, P);
    const int64_t parts[] = {columns * p.size,
                             columns * p.value_size,
                             columns * size,
                             rows * size,
                             rows * value_size,
                             widens ? rows * p.size : 0,
                             widens ? rows * p.value_size : 0,
                             rows * score_row<T>(columns),
                             rows * score_row<T>(columns),
                             columns};
    T** const targets[] = {&keys_across,  &values_across, &keys,    &queries,   &grads,
                           &wide_queries, &wide_grads,    &weights, &by_scores, &mask};
    int64_t total = 0;
    for (int64_t n : parts) total += round_up(n, 16);
    T* at = static_cast<T*>(scratch(Scratch::kernel, size_t(total) * sizeof(T)));
    complete = at != nullptr;
    for (int i = 0; i < 10; ++i) *targets[i] = at, at += complete ? round_up(parts[i], 16) : 0;
  }
};

// The results of one key head, and of the query heads that it serves.
template <class T>
struct Sums {
  T *by_query, *by_key, *by_value;
};

// A matrix b[k, n] in panels: as it is, or packed into `to`.
template <class In>
gemm::Panels<Computed<In>> panels_of(int64_t k, int64_t n, const In* b, int64_t row, int64_t column,
                                     Computed<In>* to) {
  using T = Computed<In>;
  constexpr int P = gemm::panel<T>;
  if constexpr (!is_half<In>)
    if (column == 1 && n % P == 0) return {b, P, row};
  gemm::pack(k, n, b, row, column, P, to);
  return {to, k * P, P};
}

// Turns the scores s of one row, and the gradients d by its weights, into weights and the gradients by the scores:
// s = exp(s * scale + mask - logsumexp), d = s * (d - delta) * scale. Of keys from `seen` on both are 0.
template <class T>
[[gnu::noinline]] void differentiate(T* s, T* d, int64_t seen, int64_t keys, T scale, const T* mask, bool hides,
                                     T logsumexp, T delta) {
  constexpr int64_t W = width<T>;
  for (int64_t j = 0; j < seen; j += W) {
    V<T> x = load(s + j) * scale;
    if (mask) {
      const V<T> added = load(mask + j);
      x += added;
      if (hides) stdx::where(added != T(0), x) = added;
    }
    const V<T> weight = rows::exp(x - logsumexp);
    weight.copy_to(s + j, stdx::element_aligned);
    (weight * (load(d + j) - delta) * scale).copy_to(d + j, stdx::element_aligned);
  }
  for (int64_t j = seen; j < keys; ++j) s[j] = d[j] = 0;
}

template <class In>
struct Gradient {
  using T = Computed<In>;
  const Problem& p;
  const In *result, *grad;  // dense
  const T* logsumexp;
  int64_t key_heads;  // of all batches

  int64_t matrix_of(int64_t head, int64_t i) const { return head * p.heads_per_key + i; }

  // Queries [first, first + n) of one matrix, and keys [j, j + m).
  void block(const Problem::Place& at, int64_t matrix, int64_t first, int64_t n, int64_t j, int64_t m,
             const gemm::Panels<T>& keys, const Workspace<T>& w, const Sums<T>& sums) const {
    constexpr int P = gemm::panel<T>;
    const int64_t row = score_row<T>(m), begin = matrix * p.queries + first;
    const In* const q = reinterpret_cast<const In*>(p.q.data) + at.q + first * p.q.row;
    const In *const g = grad + begin * p.value_size, *const y = result + begin * p.value_size;
    const T *queries, *grads;
    int64_t q_row = p.q.row, q_column = p.q.column;
    if constexpr (is_half<In>) {
      for (int64_t i = 0; i < n; ++i) widened(q + i * p.q.row, p.q.column, p.size, w.wide_queries + i * p.size);
      widened(g, 1, n * p.value_size, w.wide_grads);
      queries = w.wide_queries, grads = w.wide_grads, q_row = p.size, q_column = 1;
    } else {
      queries = q, grads = g;
    }
    gemm::multiply<T>(n, m, p.size, queries, q_row, q_column, {w.keys_across, p.size * P, P}, w.weights, row,
                      false);
    gemm::multiply<T>(n, m, p.value_size, grads, p.value_size, 1, {w.values_across, p.value_size * P, P},
                      w.by_scores, row, false);
    if (p.one_mask()) read_mask(p, at.mask + j * p.mask.column, m, w.mask);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t visible = p.causal ? least(m, first + i - j + 1) : m;
      if (p.mask.data && !p.one_mask())
        read_mask(p, at.mask + (first + i) * p.mask.row + j * p.mask.column, m, w.mask);
      T delta = 0;
      for (int64_t x = 0; x < p.value_size; ++x)
        delta += grads[i * p.value_size + x] * gemm::load(y[i * p.value_size + x]);
      const T sum = logsumexp[begin + i];
      differentiate(w.weights + i * row, w.by_scores + i * row, visible < 0 ? 0 : visible, m, T(p.scale),
                    p.mask.data ? w.mask : nullptr, p.hides(), sum == -T(__builtin_inf()) ? T(0) : sum, delta);
    }
    gemm::multiply<T>(m, p.value_size, n, w.weights, 1, row,
                      panels_of(n, p.value_size, g, p.value_size, 1, w.grads), sums.by_value + j * p.value_size,
                      p.value_size, true);
    gemm::multiply<T>(m, p.size, n, w.by_scores, 1, row, panels_of(n, p.size, q, p.q.row, p.q.column, w.queries),
                      sums.by_key + j * p.size, p.size, true);
    gemm::multiply<T>(n, p.size, m, w.by_scores, row, 1, keys, sums.by_query + first * p.size, p.size, true);
  }

  void head(int64_t head, const Workspace<T>& w, const Sums<T>& sums) const {
    constexpr int P = gemm::panel<T>;
    const Problem::Place of_keys = p.place(matrix_of(head, 0));
    const In* const k = reinterpret_cast<const In*>(p.k.data) + of_keys.k;
    const In* const v = reinterpret_cast<const In*>(p.v.data) + of_keys.v;
    for (int64_t j = 0; j < p.keys; j += key_block) {
      const int64_t m = least(key_block, p.keys - j);
      gemm::pack(p.size, m, k + j * p.k.row, p.k.column, p.k.row, P, w.keys_across);
      gemm::pack(p.value_size, m, v + j * p.v.row, p.v.column, p.v.row, P, w.values_across);
      const gemm::Panels<T> keys = panels_of(m, p.size, k + j * p.k.row, p.k.row, p.k.column, w.keys);
      for (int64_t i = 0; i < p.heads_per_key; ++i) {
        const int64_t matrix = matrix_of(head, i);
        const Sums<T> of_matrix{sums.by_query + i * p.queries * p.size, sums.by_key, sums.by_value};
        for (int64_t first = 0; first < p.queries; first += query_block) {
          const int64_t n = least(query_block, p.queries - first);
          if (p.causal && first + n <= j) continue;
          block(p.place(matrix), matrix, first, n, j, m, keys, w, of_matrix);
        }
      }
    }
  }
};

template <class In>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const Problem p(c, c->in[5], 6);
  int64_t matrices = 1;
  for (int i = 0; i + 2 < p.out->ndim; ++i) matrices *= p.out->shape[i];
  In* const out[] = {dvt::data<In>(c->out[0]), dvt::data<In>(c->out[1]), dvt::data<In>(c->out[2])};
  const int64_t of_head[] = {p.heads_per_key * p.queries * p.size, p.keys * p.size, p.keys * p.value_size};
  const Gradient<In> gradient{p, dvt::data<const In>(c->in[3]), dvt::data<const In>(c->in[5]),
                              dvt::data<const T>(c->in[4]), matrices / p.heads_per_key};
  if constexpr (!is_half<In>)
    for (int i = 0; i < 3; ++i)
      for (int64_t x = 0, n = dvt::size(c->out[i]); x < n; ++x) out[i][x] = 0;
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(gradient.key_heads), 1, [&](uint64_t begin, uint64_t end, uint32_t) {
    const Workspace<T> workspace(p, is_half<In>);
    const size_t floats = is_half<In> ? size_t(of_head[0] + of_head[1] + of_head[2]) : 0;
    const Temporary wide(floats * sizeof(T));
    if (!workspace.complete || !wide) return complete.store(false, std::memory_order_relaxed);
    for (int64_t head = int64_t(begin); head < int64_t(end); ++head) {
      T* at[3];
      if constexpr (is_half<In>) {
        at[0] = reinterpret_cast<T*>(wide.get()), at[1] = at[0] + of_head[0], at[2] = at[1] + of_head[1];
        for (size_t i = 0; i < floats; ++i) at[0][i] = 0;
      } else {
        for (int i = 0; i < 3; ++i) at[i] = out[i] + head * of_head[i];
      }
      gradient.head(head, workspace, {at[0], at[1], at[2]});
      if constexpr (is_half<In>)
        for (int i = 0; i < 3; ++i) put_row(at[i], out[i] + head * of_head[i], 1, of_head[i]);
    }
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  if (dvt::Attrs(c).f64(3) > 0) {
    DVT_PUT(answer, dvt_answer, reason, "dropout is left to the decomposition");
    return DVT_UNSUPPORTED;
  }
  return query_mask(c, 6, answer);
}

template <class T>
void add(Table& table, DLDataType type) {
  const DLDataType of_sums = type.bits == 64 ? dvt::f64 : dvt::f32;
  table.add(dvt::Row("dvt.scaled_dot_product_attention_grad", run<T>)
                .in(type, DVT_O_STRIDED)
                .in(type, DVT_O_STRIDED)
                .in(type, DVT_O_STRIDED)
                .in(type)
                .in(of_sums)
                .in(type)
                .in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL)
                .in(dvt::u32, DVT_O_OPTIONAL)
                .out(type)
                .out(type)
                .out(type)
                .deterministic()
                .query(query)
                .kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
