// softmax_grad, log_softmax_grad along one axis.
#include <atomic>

#include "simd/axis_rows.hpp"
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

// For one row; out may be y or g.
template <class T, bool logarithm>
[[gnu::noinline]] void row(const T* y, const T* g, T* out, int64_t n) {
  constexpr int64_t W = width<T>;
  const V<T> sum = sum_of(g, n, T(0), [&](V<T> v, int64_t i, int64_t count) {
    if constexpr (logarithm) return v;
    else return v * part(y, i, count);
  });
  for (int64_t i = 0; i < n; i += W) {
    const int64_t count = n - i < W ? n - i : W;
    const V<T> of_y = part(y, i, count), of_g = part(g, i, count);
    put(logarithm ? of_g - rows::exp(of_y) * sum : of_y * (of_g - sum), out, i, count);
  }
}

template <class In, bool logarithm>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const int64_t axis = dvt::Attrs(c).i64(0);
  const AxisRows ys(c->in[0], axis), gs(c->in[1], axis);
  const int64_t size = ys.size, inner = ys.inner;
  const In *const y = dvt::data<const In>(c->in[0]), *const g = dvt::data<const In>(c->in[1]);
  In* const out = dvt::data<In>(c->out[0]);
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(ys.count()), uint64_t(8192 / (size + 1) + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      T* const buffer = static_cast<T*>(scratch(Scratch::kernel, size_t(3 * size) * sizeof(T)));
                      if (!buffer) return complete.store(false, std::memory_order_relaxed);
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t o = at / inner, i = at % inner;
                        const T* const of_y = widened(y + ys.offset(o, i), ys.stride, size, buffer);
                        const T* const of_g = widened(g + gs.offset(o, i), gs.stride, size, buffer + size);
                        In* const to = out + o * size * inner + i;
                        if constexpr (!is_half<In>) {
                          if (inner == 1) {
                            row<T, logarithm>(of_y, of_g, to, size);
                            continue;
                          }
                        }
                        row<T, logarithm>(of_y, of_g, buffer + 2 * size, size);
                        put_row(buffer + 2 * size, to, inner, size);
                      }
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  const auto row = [&](const char* op, auto* function) {
    table.add(
        dvt::Row(op, function).in(type, DVT_O_STRIDED).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
  };
  row("dvt.softmax_grad", run<T, false>);
  row("dvt.log_softmax_grad", run<T, true>);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
