// scaled_dot_product_attention: blocks of queries go to the pool; each iterates over blocks of keys with a
// running maximum and sum, so only one block of scores exists at a time.
#include <atomic>

#include "simd/gemm.hpp"
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;
constexpr int64_t query_block = 112, key_block = 512;  // queries: whole register tiles of 14 rows
constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }
// Rows of scores: whole panels and some padding, so that they do not map to the same cache lines.
template <class T>
constexpr int64_t score_row(int64_t keys) {
  return round_up(keys, gemm::panel<T>) + 16;
}

// An operand (..., rows, columns): the strides of its last two axes, and its strides for the output's batch
// axes, 0 if broadcast.
struct Operand {
  const char* data = nullptr;
  int64_t row = 0, column = 0, batch[DVT_MAX_NDIM] = {};

  Operand(const DLTensor* t, const DLTensor* out) {
    if (!t) return;
    data = dvt::data<const char>(t);
    const int n = t->ndim, shift = out->ndim - n;
    if (n >= 2) row = t->shape[n - 2] == 1 ? 0 : t->strides[n - 2];
    if (n >= 1) column = t->shape[n - 1] == 1 ? 0 : t->strides[n - 1];
    for (int i = 0; i + 2 < n; ++i) batch[i + shift] = t->shape[i] == 1 ? 0 : t->strides[i];
  }
};

struct Problem {
  Operand q, k, v, mask;
  DLDataType mask_type{};
  const DLTensor* out = nullptr;
  int64_t queries = 0, keys = 0, size = 0, value_size = 0, heads_per_key = 1, blocks = 1;
  double scale = 1;
  bool causal = false;

  // How many keys take part in one matrix of the batch.
  const int64_t* lengths = nullptr;
  int64_t matrices_per_length = 1;
  int64_t keys_of(int64_t matrix) const {
    if (!lengths) return keys;
    const int64_t n = lengths[matrix / matrices_per_length];
    return n < 0 ? 0 : least(n, keys);
  }

  // Offsets of one matrix of the batch, in elements.
  struct Place {
    int64_t q = 0, k = 0, v = 0, mask = 0;
  };
  Place place(int64_t at) const {
    Place p;
    for (int i = out->ndim - 2; i-- > 0; at /= out->shape[i]) {
      const int64_t n = at % out->shape[i], shared = i == out->ndim - 3 ? n / heads_per_key : n;
      p.q += n * q.batch[i], p.k += shared * k.batch[i], p.v += shared * v.batch[i], p.mask += n * mask.batch[i];
    }
    return p;
  }
};

// The values that the mask adds to scores [0, n) of a row.
template <class T>
void read_mask(const Problem& p, int64_t offset, int64_t n, T* out) {
  const int64_t step = p.mask.column;
  const auto each = [&](auto* data, auto value) {
    for (int64_t j = 0; j < n; ++j) out[j] = T(value(data[offset + j * step]));
  };
  const char* data = p.mask.data;
  if (p.mask_type.code == DVT_BOOL)
    each(reinterpret_cast<const uint8_t*>(data), [](uint8_t x) { return x ? T(0) : -T(__builtin_inf()); });
  else if (p.mask_type.code == DVT_BFLOAT)
    each(reinterpret_cast<const bf16*>(data), [](bf16 x) { return widen(x); });
  else if (p.mask_type.bits == 16) each(reinterpret_cast<const f16*>(data), [](f16 x) { return widen(x); });
  else if (p.mask_type.bits == 32) each(reinterpret_cast<const float*>(data), [](float x) { return x; });
  else each(reinterpret_cast<const double*>(data), [](double x) { return x; });
}

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
  const bool one_mask = p.mask.data && !p.mask.row;
  for (int64_t j = 0; j < end; j += key_block) {
    const int64_t m = least(key_block, end - j), padded = round_up(m, width<T>), row = score_row<T>(m);
    gemm::pack(p.size, m, k + j * p.k.row, p.k.column, p.k.row, P, workspace.keys);
    gemm::multiply<T>(n, m, p.size, a, a_row, a_column, {workspace.keys, p.size * P, P}, workspace.scores, row,
                      false);
    if (one_mask) read_mask(p, at.mask + j * p.mask.column, m, workspace.mask);
    for (int64_t x = m; x < padded; ++x) workspace.mask[x] = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t seen = p.causal ? least(m, first + i - j + 1) : m;
      T* const s = workspace.scores + i * row;
      if (seen <= 0) {
        for (int64_t x = 0; x < m; ++x) s[x] = 0;
        continue;
      }
      if (p.mask.data && !one_mask)
        read_mask(p, at.mask + (first + i) * p.mask.row + j * p.mask.column, m, workspace.mask);
      const T factor = weigh(s, seen, padded, T(p.scale), p.mask.data ? workspace.mask : nullptr,
                             p.mask_type.code == DVT_BOOL, workspace.top[i], workspace.sum[i]);
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
  const DLTensor &q = *c->in[0], &k = *c->in[1], &v = *c->in[2], &out = *c->out[0];
  const DLTensor* mask = dvt::has_in(c, 3) ? c->in[3] : nullptr;
  const dvt::Attrs a(c);
  Problem p{.q{&q, &out}, .k{&k, &out}, .v{&v, &out}, .mask{mask, &out}, .out = &out};
  if (mask) p.mask_type = mask->dtype;
  p.causal = a.boolean(0), p.scale = a.f64(1);
  p.queries = q.shape[q.ndim - 2], p.size = q.shape[q.ndim - 1], p.keys = k.shape[k.ndim - 2];
  p.value_size = v.shape[v.ndim - 1];
  if (p.queries == 1) p.q.row = p.size;
  if (q.ndim >= 3 && k.ndim >= 3 && k.shape[k.ndim - 3] > 1)
    p.heads_per_key = q.shape[q.ndim - 3] / k.shape[k.ndim - 3];
  if (p.heads_per_key < 1) p.heads_per_key = 1;
  p.blocks = (p.queries + query_block - 1) / query_block;
  const bool pack_values = is_half<In> || p.v.column != 1 || p.value_size % P;
  const int64_t step = (p.queries + p.blocks - 1) / p.blocks,
                matrices = dvt::size(&out) / (p.queries * p.value_size);
  if (dvt::has_in(c, 4)) {
    p.lengths = dvt::data<const int64_t>(c->in[4]);
    p.matrices_per_length = matrices / dvt::size(c->in[4]);
  }
  const int64_t work = step * p.keys * (p.size + p.value_size) + 1;
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(matrices * p.blocks), uint64_t(200'000 / work + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      const Workspace<T> workspace(p, is_half<In>, pack_values);
                      if (!workspace.complete) return complete.store(false, std::memory_order_relaxed);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t matrix = at / p.blocks, first = at % p.blocks * step;
                        if (first >= p.queries) continue;
                        attend<In>(p, p.place(matrix), first, least(step, p.queries - first), p.keys_of(matrix),
                                   workspace, pack_values, dvt::data<In>(&out) + matrix * p.queries * p.value_size);
                      }
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const DLTensor* mask = dvt::has_in(c, 3) ? c->in[3] : nullptr;
  if (mask && mask->dtype.code != DVT_BOOL && mask->dtype.code != DVT_FLOAT && mask->dtype.code != DVT_BFLOAT) {
    DVT_PUT(answer, dvt_answer, reason, "the mask is neither bool nor floating");
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}

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
