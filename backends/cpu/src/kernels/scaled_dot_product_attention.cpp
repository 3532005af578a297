// scaled_dot_product_attention: blocks of queries go to the pool; each iterates over blocks of keys with a
// running maximum and sum, so only one block of scores exists at a time.
#include <atomic>

#include "simd/attention.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace attention;

// How many keys take part in one matrix of the batch.
struct Lengths {
  const int64_t* lengths = nullptr;
  int64_t matrices_per_length = 1;
  int64_t keys_of(const Problem& p, int64_t matrix) const {
    if (!lengths) return p.keys;
    const int64_t n = lengths[matrix / matrices_per_length];
    return n < 0 ? 0 : least(n, p.keys);
  }
};

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

  Workspace(const Problem& p, bool converts, bool pack_values) {
    constexpr int P = gemm::panel<T>;
    const int64_t rows = least(query_block, p.queries), columns = round_up(least(key_block, p.keys), P);
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

// Queries [first, first + n) of one matrix, which see the first `keys` keys.
template <class In>
void attend(const Problem& p, const Problem::Place& at, int64_t first, int64_t n, int64_t keys,
            const Workspace<Computed<In>>& workspace, bool pack_values, In* out) {
  using T = Computed<In>;
  constexpr int P = gemm::panel<T>;
  const In* const q = reinterpret_cast<const In*>(p.q.data) + at.q + first * p.q.row;
  const In* const k = reinterpret_cast<const In*>(p.k.data) + at.k;
  const In* const v = reinterpret_cast<const In*>(p.v.data) + at.v;
  const T* a = reinterpret_cast<const T*>(q);
  int64_t a_row = p.q.row, a_column = p.q.column;
  if constexpr (is_half<In>) {
    for (int64_t i = 0; i < n; ++i) widened(q + i * p.q.row, p.q.column, p.size, workspace.queries + i * p.size);
    a = workspace.queries, a_row = p.size, a_column = 1;
  }
  for (int64_t i = 0; i < n; ++i) workspace.top[i] = -T(__builtin_inf()), workspace.sum[i] = 0;
  for (int64_t i = 0; i < n * p.value_size; ++i) workspace.results[i] = 0;
  const int64_t end = p.causal ? least(keys, first + n) : keys;
  for (int64_t j = 0; j < end; j += key_block) {
    const int64_t m = least(key_block, end - j), padded = round_up(m, width<T>), row = score_row<T>(m);
    gemm::pack(p.size, m, k + j * p.k.row, p.k.column, p.k.row, P, workspace.keys);
    gemm::multiply<T>(n, m, p.size, a, a_row, a_column, {workspace.keys, p.size * P, P}, workspace.scores, row,
                      false);
    if (p.one_mask()) read_mask(p, at.mask + j * p.mask.column, m, workspace.mask);
    for (int64_t x = m; x < padded; ++x) workspace.mask[x] = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t seen = p.causal ? least(m, first + i - j + 1) : m;
      T* const s = workspace.scores + i * row;
      if (seen <= 0) {
        for (int64_t x = 0; x < m; ++x) s[x] = 0;
        continue;
      }
      if (p.mask.data && !p.one_mask())
        read_mask(p, at.mask + (first + i) * p.mask.row + j * p.mask.column, m, workspace.mask);
      const T factor = weigh(s, seen, padded, T(p.scale), p.mask.data ? workspace.mask : nullptr, p.hides(),
                             workspace.top[i], workspace.sum[i]);
      if (factor != 1 && j)
        for (int64_t x = 0; x < p.value_size; ++x) workspace.results[i * p.value_size + x] *= factor;
    }
    gemm::Panels<T> panels{reinterpret_cast<const T*>(v + j * p.v.row), P, p.v.row};
    if (is_half<In> || pack_values) {
      gemm::pack(m, p.value_size, v + j * p.v.row, p.v.row, p.v.column, P, workspace.values);
      panels = {workspace.values, m * P, P};
    }
    gemm::multiply<T>(n, p.value_size, m, workspace.scores, row, 1, panels, workspace.results, p.value_size,
                      j != 0);
  }
  for (int64_t i = 0; i < n; ++i) {
    T* const r = workspace.results + i * p.value_size;
    const T inverse = workspace.sum[i] == 0 ? T(0) : 1 / workspace.sum[i];  // fully masked: 0
    if (workspace.sum[i] == 0)
      for (int64_t x = 0; x < p.value_size; ++x) r[x] = 0;
    for (int64_t x = 0; x < p.value_size; ++x) r[x] *= inverse;
    put_row(r, out + (first + i) * p.value_size, 1, p.value_size);
  }
}

template <class In>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  constexpr int P = gemm::panel<T>;
  const DLTensor& out = *c->out[0];
  const Problem p(c, &out, 3);
  const int64_t blocks = (p.queries + query_block - 1) / query_block;
  const bool pack_values = is_half<In> || p.v.column != 1 || p.value_size % P;
  const int64_t step = (p.queries + blocks - 1) / blocks, matrices = dvt::size(&out) / (p.queries * p.value_size);
  Lengths lengths;
  if (dvt::has_in(c, 4)) lengths = {dvt::data<const int64_t>(c->in[4]), matrices / dvt::size(c->in[4])};
  const int64_t work = step * p.keys * (p.size + p.value_size) + 1;
  std::atomic<bool> complete{true};
  dvt::parallel_for(
      uint64_t(matrices * blocks), uint64_t(200'000 / work + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
        const Workspace<T> workspace(p, is_half<In>, pack_values);
        if (!workspace.complete) return complete.store(false, std::memory_order_relaxed);
        for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
          const int64_t matrix = at / blocks, first = at % blocks * step;
          if (first >= p.queries) continue;
          attend<In>(p, p.place(matrix), first, least(step, p.queries - first), lengths.keys_of(p, matrix),
                     workspace, pack_values, dvt::data<In>(&out) + matrix * p.queries * p.value_size);
        }
      });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) { return query_mask(c, 3, answer); }

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.scaled_dot_product_attention", run<T>)
                .in(type, DVT_O_STRIDED)
                .in(type, DVT_O_STRIDED)
                .in(type, DVT_O_STRIDED)
                .in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL)
                .in(dvt::i64, DVT_O_HOST_SCALAR | DVT_O_OPTIONAL)
                .out(type)
                .version(2)
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
