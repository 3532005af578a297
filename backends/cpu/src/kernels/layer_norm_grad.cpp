// layer_norm_grad, rms_norm_grad over the last axes. The gradients by weight and bias are sums over rows: of chunks
// of rows first, whose number does not depend on that of the threads, then of the chunks.
#include "chunks.hpp"
#include "simd/rows.hpp"
#include "temporary.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

template <class T>
struct Row {
  const T *x, *g, *weight;  // weight may be NULL
  T *out, *by_weight, *by_bias;
  int64_t n;
  T eps;
};

// One row, whose terms of the sums are added to by_weight and by_bias. out may be x or g.
template <class T, bool centred>
[[gnu::noinline]] void row_grad(const Row<T>& r) {
  constexpr int64_t W = width<T>;
  const int64_t n = r.n;
  T mean = 0;
  if constexpr (centred) mean = sum_of(r.x, n, T(0), [](V<T> v, int64_t, int64_t) { return v; }) / T(n);
  const V<T> middle = mean;
  const T square =
      sum_of(r.x, n, mean, [=](V<T> v, int64_t, int64_t) { return (v - middle) * (v - middle); }) / T(n);
  const V<T> inverse = 1 / std::sqrt(square + r.eps);
  const auto weighted = [&](V<T> g, int64_t i, int64_t count) {
    return r.weight ? g * part(r.weight, i, count) : g;
  };
  const Two<T> sums = sums_of(r.g, n, [&](V<T> g, int64_t i, int64_t count) -> Two<V<T>> {
    const V<T> w = weighted(g, i, count);
    return {w, w * ((part(r.x, i, count) - middle) * inverse)};
  });
  const V<T> of_ones = centred ? sums.a / T(n) : T(0), of_x = sums.b / T(n);
  for (int64_t i = 0; i < n; i += W) {
    __builtin_prefetch(r.x + n + i), __builtin_prefetch(r.g + n + i);  // the next row's
    const int64_t count = n - i < W ? n - i : W;
    const V<T> g = part(r.g, i, count), y = (part(r.x, i, count) - middle) * inverse;
    put((weighted(g, i, count) - of_ones - y * of_x) * inverse, r.out, i, count);
    put(part(r.by_weight, i, count) + g * y, r.by_weight, i, count);
    if constexpr (centred) put(part(r.by_bias, i, count) + g, r.by_bias, i, count);
  }
}

template <class In, bool centred>
struct Problem {
  using T = Computed<In>;
  const In *x, *g, *weight;
  In* out;
  int64_t n, rows, rows_of_chunk, chunks;
  T eps;
  T* sums;                            // of each chunk: n by weight, n by bias; and those of a run of rows
  static constexpr int64_t run = 32;  // rows that are added up one after the other

  bool chunk(int64_t at) const {
    T* const buffer = is_half<In> ? static_cast<T*>(scratch(Scratch::kernel, size_t(3 * n) * sizeof(T))) : nullptr;
    if (is_half<In> && !buffer) return false;
    T *const total = sums + at * 4 * n, *const of_run = total + 2 * n;
    for (int64_t i = 0; i < 4 * n; ++i) total[i] = 0;
    Row<T> row{nullptr, nullptr, nullptr, nullptr, of_run, of_run + n, n, eps};
    if (weight) row.weight = widened(weight, 1, n, buffer + (is_half<In> ? 2 * n : 0));
    const int64_t end = rows < (at + 1) * rows_of_chunk ? rows : (at + 1) * rows_of_chunk;
    for (int64_t i = at * rows_of_chunk; i < end; ++i) {
      row.x = widened(x + i * n, 1, n, buffer);
      row.g = widened(g + i * n, 1, n, buffer + (is_half<In> ? n : 0));
      if constexpr (is_half<In>) {
        row.out = buffer;
        row_grad<T, centred>(row);
        put_row(buffer, out + i * n, 1, n);
      } else {
        row.out = out + i * n;
        row_grad<T, centred>(row);
      }
      if ((i + 1) % run == 0 || i + 1 == end)
        for (int64_t k = 0; k < 2 * n; ++k) total[k] += of_run[k], of_run[k] = 0;
    }
    return true;
  }

  // Joins the sums of all chunks in those of the first.
  void join() const {
    for (int64_t at = 1; at < chunks; ++at)
      for (int64_t i = 0; i < 2 * n; ++i) sums[i] += sums[at * 4 * n + i];
  }
};

template <class In, bool centred>
dvt_status run(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  int64_t n = 1;
  for (int64_t size : a.i64s(0)) n *= size;
  if (!n) return DVT_OK;
  Problem<In, centred> p{};
  p.x = dvt::data<const In>(c->in[0]), p.g = dvt::data<const In>(c->in[1]);
  p.weight = dvt::has_in(c, 2) ? dvt::data<const In>(c->in[2]) : nullptr;
  p.out = dvt::data<In>(c->out[0]);
  p.n = n, p.rows = dvt::size(c->in[0]) / n, p.eps = Computed<In>(a.f64(1));
  // Their sums together take half of x's memory at most.
  p.rows_of_chunk = most(most(8, divide_up(p.rows, 64)), 16384 / n);
  p.chunks = most(divide_up(p.rows, p.rows_of_chunk), 1);
  const Temporary sums(size_t(p.chunks * 4 * n) * sizeof(Computed<In>));
  if (!sums) return DVT_OOM;
  p.sums = reinterpret_cast<Computed<In>*>(sums.get());
  if (dvt_status status = for_each_chunk(p.chunks, 1, [&](int64_t at) { return p.chunk(at); })) return status;
  p.join();
  put_row(p.sums, dvt::data<In>(c->out[1]), 1, n);
  if constexpr (centred) put_row(p.sums + n, dvt::data<In>(c->out[2]), 1, n);
  return DVT_OK;
}

template <class T>
void add(Table& table, DLDataType type) {
  dvt::Row centred("dvt.layer_norm_grad", run<T, true>), plain("dvt.rms_norm_grad", run<T, false>);
  for (dvt::Row* row : {&centred, &plain}) row->in(type).in(type).in(type, DVT_O_OPTIONAL).out(type).out(type);
  table.add(centred.out(type).deterministic().kernel());
  table.add(plain.deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
