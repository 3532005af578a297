// group_norm: each group of channels, with the axes behind them, is a row; weight and bias are by channel.
#include <atomic>

#include "simd/moments.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

template <class In>
struct Groups {
  using T = Computed<In>;
  const In *weight, *bias;  // by channel; may be NULL
  int64_t channels, size;   // of a group; elements of a channel
  T eps;

  // The group of x that begins with channel `first`; out may be x.
  [[gnu::noinline]] void normalise(const T* x, T* out, int64_t first) const {
    const Moments<T> m = moments<true>(x, channels * size, eps);
    for (int64_t c = 0; c < channels; ++c)
      scale(x + c * size, out + c * size, m, of_channel(weight, first + c, T(1)),
            of_channel(bias, first + c, T(-0.0)));  // -0 added changes nothing, not even -0
  }

 private:
  static T of_channel(const In* x, int64_t channel, T missing) {
    if (!x) return missing;
    if constexpr (is_half<In>) return widen(x[channel]);
    else return x[channel];
  }
  DOVETAIL_CPU_INLINE void scale(const T* x, T* out, Moments<T> m, T weight, T bias) const {
    constexpr int64_t W = width<T>;
    const V<T> mean = m.mean, root = m.root, factor = weight, term = bias;
    for (int64_t i = 0; i < size; i += W) {
      const int64_t count = size - i < W ? size - i : W;
      put((part(x, i, count) - mean) / root * factor + term, out, i, count);
    }
  }
};

template <class In>
dvt_status run(dvt_device*, const dvt_call* call) {
  using T = Computed<In>;
  const dvt::Attrs a(call);
  const DLTensor* const x = call->in[0];
  const int64_t groups = a.i64(0), rows = x->shape[0] * groups, n = dvt::size(x) / rows;
  const auto vector = [&](uint32_t i) { return dvt::has_in(call, i) ? dvt::data<const In>(call->in[i]) : nullptr; };
  const int64_t channels = x->shape[1] / groups;
  const Groups<In> g{vector(1), vector(2), channels, n / channels, T(a.f64(1))};
  const In* const from = dvt::data<const In>(x);
  In* const to = dvt::data<In>(call->out[0]);
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(rows), uint64_t(8192 / n + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
      const int64_t first = i % groups * channels;
      if constexpr (is_half<In>) {
        T* const buffer = static_cast<T*>(scratch(Scratch::kernel, size_t(n) * sizeof(T)));
        if (!buffer) return complete.store(false, std::memory_order_relaxed);
        g.normalise(widened(from + i * n, 1, n, buffer), buffer, first);
        put_row(buffer, to + i * n, 1, n);
      } else {
        g.normalise(from + i * n, to + i * n, first);
      }
    }
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.group_norm", run<T>)
                .in(type)
                .in(type, DVT_O_OPTIONAL)
                .in(type, DVT_O_OPTIONAL)
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
