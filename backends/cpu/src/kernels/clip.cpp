// clip(x, min, max): min(max(x, low), high), either bound optional; NaN in any operand propagates.
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// The same comparisons as maximum and minimum in elementwise_arithmetic.cpp: a NaN of x stays.
template <class T>
DOVETAIL_CPU_INLINE T at_least(T x, T low) {
  return x > low || x != x ? x : low;
}
template <class T>
DOVETAIL_CPU_INLINE T at_most(T x, T high) {
  return x < high || x != x ? x : high;
}
// Between bounds that are no NaN; a NaN of x stays. The compiler makes vectors of it.
template <class T>
DOVETAIL_CPU_INLINE T between(T x, T low, T high) {
  const T y = !(x <= low) ? x : low;
  return !(y >= high) ? y : high;
}

struct Low {
  template <class T>
  T operator()(T x, T low) const {
    return at_least(x, low);
  }
};
struct High {
  template <class T>
  T operator()(T x, T high) const {
    return at_most(x, high);
  }
};
template <class T>
void both(const void* const* in, const int64_t* step, void* out, int64_t n) {
  const T *x = static_cast<const T*>(in[0]), *low = static_cast<const T*>(in[1]),
          *high = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  if (step[0] && !step[1] && !step[2]) {
    const T a = *low, b = *high;
    if (a != a || b != b) {
      for (int64_t i = 0; i < n; ++i) y[i] = a != a ? a : b;
      return;
    }
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = between(x[i], a, b);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = at_most(at_least(x[i * step[0]], low[i * step[1]]), high[i * step[2]]);
  }
}
template <class T, Half half>
constexpr uint8_t bytes = half == Half::no ? sizeof(T) : 2;
template <class T, Half half>
inline constexpr Elementwise both_spec{
    both<T>, 3, {bytes<T, half>, bytes<T, half>, bytes<T, half>}, bytes<T, half>, true, half, half};
template <class Op, class T, Half half>
inline constexpr Elementwise one_spec{
    binary_loop<Op, T, T>, 2, {bytes<T, half>, bytes<T, half>}, bytes<T, half>, true, half, half};
template <class T, Half half>
inline constexpr Elementwise none_spec = [] {
  struct Keep {
    T operator()(T x) const { return x; }
  };
  return Elementwise{unary_loop<Keep, T, T>, 1, {bytes<T, half>}, bytes<T, half>, false, half, half};
}();

template <class T, Half half>
dvt_status clip(dvt_device*, const dvt_call* c) {
  const bool low = dvt::has_in(c, 1), high = dvt::has_in(c, 2);
  if (low && high) return run_elementwise(both_spec<T, half>, c);
  const DLTensor* in[2] = {c->in[0], low ? c->in[1] : high ? c->in[2] : nullptr};
  dvt_call one = *c;
  one.in = in, one.n_in = 1 + (low || high);
  return run_elementwise(low ? one_spec<Low, T, half> : high ? one_spec<High, T, half> : none_spec<T, half>, &one);
}

template <class T, Half half = Half::no>
void add(Table& t, DLDataType type = dvt::dtype_of<T>()) {
  constexpr unsigned flags = DVT_O_STRIDED | DVT_O_HOST_SCALAR | DVT_O_ALIAS;
  dvt::Row row("dvt.clip", clip<T, half>);
  row.in(type, flags).in(type, flags | DVT_O_OPTIONAL).in(type, flags | DVT_O_OPTIONAL).out(type).deterministic();
  t.add(row.kernel());
  t.add_loop({"dvt.clip", &both_spec<T, half>, nullptr, {type, type, type}, type});
  t.add_loop({"dvt.clip", &one_spec<Low, T, half>, nullptr, {type, type}, type, nullptr, 1u << 2});
  t.add_loop({"dvt.clip", &one_spec<High, T, half>, nullptr, {type, type}, type, nullptr, 1u << 1});
  t.add_loop({"dvt.clip", &none_spec<T, half>, nullptr, {type}, type, nullptr, 1u << 1 | 1u << 2});
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add<int8_t>(t);
  add<int16_t>(t);
  add<int32_t>(t);
  add<int64_t>(t);
  add<uint8_t>(t);
  add<uint16_t>(t);
  add<uint32_t>(t);
  add<uint64_t>(t);
  add<float>(t);
  add<double>(t);
  add<float, Half::f16>(t, dvt::f16);
  add<float, Half::bf16>(t, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
