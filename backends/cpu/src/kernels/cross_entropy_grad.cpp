// cross_entropy_grad: softmax of each row less the target's share, times the gradient by the loss.
#include <atomic>

#include "simd/axis_rows.hpp"
#include "simd/indices.hpp"
#include "simd/softmax.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

// The targets, in which `ignored` is none; and how many others there are.
struct Targets {
  const int64_t* at;
  int64_t ignored, count = 0;
  bool keeps(int64_t row) const { return at[row] != ignored; }
};

dvt_status check(Targets& targets, int64_t rows, int64_t axis, int64_t classes) {
  for (int64_t i = 0; i < rows; ++i) {
    if (!targets.keeps(i)) continue;
    ++targets.count;
    if (const int64_t t = targets.at[i]; !on_axis(t, classes))
      return fail_index("cross_entropy_grad", t, axis, classes);
  }
  return DVT_OK;
}

// y = (softmax(x) - shares) * factor; y may be x.
template <class T>
void row_grad(const T* x, T* y, int64_t n, int64_t target, T smoothing, T factor) {
  softmax_row<T, false>(x, y, n);
  y[target] -= 1 - smoothing;
  const T everywhere = smoothing / T(n);
  for (int64_t i = 0; i < n; ++i) y[i] = (y[i] - everywhere) * factor;
}

template <class In>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const dvt::Attrs a(c);
  const AxisRows rows(c->in[0], c->in[0]->ndim > 1);
  const int64_t size = rows.size, inner = rows.inner;
  Targets targets{dvt::data<const int64_t>(c->in[1]), a.i64(0)};
  if (dvt_status s = check(targets, rows.count(), rows.axis, size)) return s;
  const In *const x = dvt::data<const In>(c->in[0]), *const grad = dvt::data<const In>(c->in[2]);
  In* const out = dvt::data<In>(c->out[0]);
  const bool each = a.is(1, "none");
  const T share = a.is(1, "mean") ? T(targets.count) : T(1), smoothing = T(a.f64(2));
  const auto of_loss = [=](int64_t at) -> T {
    const In g = grad[each ? at : 0];
    if constexpr (is_half<In>) return widen(g);
    else return g;
  };
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(rows.count()), uint64_t(8192 / (size + 1) + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      T* const buffer = static_cast<T*>(scratch(Scratch::kernel, size_t(size) * sizeof(T)));
                      if (!buffer) return complete.store(false, std::memory_order_relaxed);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t o = at / inner, i = at % inner;
                        In* const to = out + o * size * inner + i;
                        if (!targets.keeps(at)) {
                          for (int64_t k = 0; k < size; ++k) to[k * inner] = In{};
                          continue;
                        }
                        const T* const from = widened(x + rows.offset(o, i), rows.stride, size, buffer);
                        T* y = buffer;
                        if constexpr (!is_half<In>)
                          if (inner == 1) y = to;
                        const T factor = of_loss(at) / share;
                        row_grad(from, y, size, wrapped(targets.at[at], size), smoothing, factor);
                        if (y == buffer) put_row(buffer, to, inner, size);
                      }
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.cross_entropy_grad", run<T>)
                .in(type, DVT_O_STRIDED)
                .in(dvt::i64)
                .in(type)
                .out(type)
                .deterministic()
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
