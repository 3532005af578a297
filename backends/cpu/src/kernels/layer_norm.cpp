// layer_norm, rms_norm over the last axes, in two passes: the mean, then the mean square of the differences.
#include <atomic>

#include "simd/moments.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

template <class T>
struct Row {
  const T *x, *weight, *bias;  // weight and bias may be NULL
  T* out;
  int64_t n;
  T eps;
};

template <class T, bool centred>
[[gnu::noinline]] void normalise(const Row<T>& r) {
  constexpr int64_t W = width<T>;
  const Moments<T> m = moments<centred>(r.x, r.n, r.eps);
  const V<T> middle = m.mean, root = m.root;
  const auto normalise_by = [&](auto divided) {
    const auto result = [&](auto at) {
      V<T> y = divided(at(r.x) - middle);  // a product with 1 / root would round twice
      if (r.weight) y = y * at(r.weight);
      if (r.bias) y = y + at(r.bias);
      return y;
    };
    const T* const next = r.x + r.n;  // the next row: its lines arrive while this one is computed
    int64_t i = 0;
    for (; i + W <= r.n; i += W) {
      __builtin_prefetch(next + i);
      result([i](const T* p) { return load(p + i); }).copy_to(r.out + i, stdx::element_aligned);
    }
    if (const int64_t rest = r.n - i)
      store_part(result([=](const T* p) { return load_part(p + i, rest, T(0)); }), r.out + i, rest);
  };
  if (Divisor<T>::suits(m.root)) return normalise_by([by = Divisor<T>(m.root)](V<T> x) { return by.divide(x); });
  normalise_by([root](V<T> x) { return x / root; });
}

template <class In, bool centred>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const dvt::Attrs a(c);
  int64_t n = 1;
  for (int64_t size : a.i64s(0)) n *= size;
  const int64_t count = dvt::size(c->out[0]) / n;
  const In* const x = dvt::data<const In>(c->in[0]);
  const In* const weight = dvt::has_in(c, 1) ? dvt::data<const In>(c->in[1]) : nullptr;
  const In* const bias = centred && dvt::has_in(c, 2) ? dvt::data<const In>(c->in[2]) : nullptr;
  In* const out = dvt::data<In>(c->out[0]);
  const T eps = T(a.f64(1));
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(count), uint64_t(8192 / n + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
    Row<T> row{nullptr, nullptr, nullptr, nullptr, n, eps};
    if constexpr (is_half<In>) {
      T* const buffer = static_cast<T*>(scratch(Scratch::kernel, size_t(3 * n) * sizeof(T)));
      if (!buffer) return complete.store(false, std::memory_order_relaxed);
      row.x = row.out = buffer;
      if (weight) row.weight = widened(weight, 1, n, buffer + n);
      if (bias) row.bias = widened(bias, 1, n, buffer + 2 * n);
      for (uint64_t i = begin; i < end; ++i) {
        widened(x + int64_t(i) * n, 1, n, buffer);
        normalise<T, centred>(row);
        put_row(buffer, out + int64_t(i) * n, 1, n);
      }
    } else {
      row.weight = weight, row.bias = bias;
      for (uint64_t i = begin; i < end; ++i) {
        row.x = x + int64_t(i) * n, row.out = out + int64_t(i) * n;
        normalise<T, centred>(row);
      }
    }
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.layer_norm", run<T, true>)
                .in(type)
                .in(type, DVT_O_OPTIONAL)
                .in(type, DVT_O_OPTIONAL)
                .out(type)
                .deterministic()
                .kernel());
  table.add(
      dvt::Row("dvt.rms_norm", run<T, false>).in(type).in(type, DVT_O_OPTIONAL).out(type).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
