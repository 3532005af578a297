// cumulative_sum, cumulative_prod along one axis. float and the halves accumulate in double; double carries what
// rounding took off a sum.
#include "simd/half.hpp"
#include "simd/lines.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <class T>
struct Plain {  // integers
  T value;
  DOVETAIL_CPU_INLINE void start(T x) { value = x; }
  DOVETAIL_CPU_INLINE void add(T x) { value = T(value + x); }
  DOVETAIL_CPU_INLINE void multiply(T x) {
    if constexpr (sizeof(T) < 4) value = T(uint32_t(value) * x);
    else value *= x;
  }
  DOVETAIL_CPU_INLINE T get() const { return value; }
};
template <class T>
struct Wide {  // float and halves
  double value;
  DOVETAIL_CPU_INLINE static float widened(T x) {
    if constexpr (sizeof(T) == 2) return widen(x);
    else return x;
  }
  DOVETAIL_CPU_INLINE void start(T x) { value = widened(x); }
  DOVETAIL_CPU_INLINE void add(T x) { value += widened(x); }
  DOVETAIL_CPU_INLINE void multiply(T x) { value *= widened(x); }
  DOVETAIL_CPU_INLINE T get() const {
    if constexpr (sizeof(T) == 2) return narrow<T>(to_odd(value));
    else return T(value);
  }
};
struct Carried {  // double
  double value, lost = 0;
  DOVETAIL_CPU_INLINE void start(double x) { value = x; }
  DOVETAIL_CPU_INLINE void add(double x) {
    const double sum = value + x, part = sum - value;
    lost += (value - (sum - part)) + (x - part);
    value = sum;
  }
  DOVETAIL_CPU_INLINE void multiply(double x) { value *= x; }
  DOVETAIL_CPU_INLINE double get() const {
    return lost == lost ? lost == 0 ? value : value + lost : value;  // infinities leave NaN behind
  }
};
template <class T>
using State = std::conditional_t<std::is_same_v<T, double>, Carried,
                                 std::conditional_t<std::is_integral_v<T>, Plain<T>, Wide<T>>>;

constexpr int64_t block = 16;  // neighbouring lines that go together

// `lines` lines whose elements are `step` apart, each over the whole axis.
template <class T, bool product>
[[gnu::noinline]] void scan(const T* x, int64_t stride, int64_t step, T* out, int64_t out_stride, int64_t out_step,
                            int64_t size, int64_t lines, bool initial) {
  State<T> state[block];
  for (int64_t j = 0; j < lines; ++j) state[j] = {product ? 1 : 0};
  if (initial) {
    for (int64_t j = 0; j < lines; ++j) out[j * out_step] = state[j].get();
    out += out_stride;
  }
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < lines; ++j) {
      const T value = x[i * stride + j * step];
      if (i == 0) state[j].start(value);  // keeps the sign of -0
      else if constexpr (product) state[j].multiply(value);
      else state[j].add(value);
      out[i * out_stride + j * out_step] = state[j].get();
    }
}

template <class T, bool product>
dvt_status run(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  const Lines lines(c->in[0], a.i64(0));
  const bool initial = a.boolean(2);
  const int64_t out_size = lines.size + initial, outer_step = out_size * lines.inner;
  const T* const x = dvt::data<const T>(c->in[0]);
  T* const out = dvt::data<T>(c->out[0]);
  const bool neighbours = lines.inner > 1 && lines.inner_is_dense();
  // Lines go together where they are neighbours in memory; else one by one.
  const int64_t blocks = neighbours ? (lines.inner + block - 1) / block : lines.inner;
  const int64_t work = out_size * (neighbours ? block : 1) + 1;
  dvt::parallel_for(uint64_t(lines.outer * blocks), uint64_t(16384 / work + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t o = at / blocks, i = at % blocks * (neighbours ? block : 1);
                        const int64_t n = !neighbours ? 1 : lines.inner - i < block ? lines.inner - i : block;
                        scan<T, product>(x + lines.offset(o, i), lines.stride, 1, out + o * outer_step + i,
                                         lines.inner, 1, lines.size, n, initial);
                      }
                    });
  return DVT_OK;
}

void add_row(Table& table, const char* op, dvt::Row::Run run, DLDataType type) {
  table.add(dvt::Row(op, run).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
}
template <class T>
void add(Table& table, DLDataType type) {
  add_row(table, "dvt.cumulative_sum", run<T, false>, type);
  add_row(table, "dvt.cumulative_prod", run<T, true>, type);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
  for (DLDataType t : {dvt::i8, dvt::u8}) add<uint8_t>(table, t);
  for (DLDataType t : {dvt::i16, dvt::u16}) add<uint16_t>(table, t);
  for (DLDataType t : {dvt::i32, dvt::u32}) add<uint32_t>(table, t);
  for (DLDataType t : {dvt::i64, dvt::u64}) add<uint64_t>(table, t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
