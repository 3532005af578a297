// cumulative_sum, cumulative_prod along one axis. float, fp16 and bf16 accumulate in double; double uses
// compensated summation.
#include "simd/axis_rows.hpp"
#include "simd/half.hpp"

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
struct Wide {  // float, fp16 and bf16
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
    return lost == lost ? lost == 0 ? value : value + lost : value;  // infinities would turn into NaN
  }
};
template <class T>
using State = std::conditional_t<std::is_same_v<T, double>, Carried,
                                 std::conditional_t<std::is_integral_v<T>, Plain<T>, Wide<T>>>;

// A row of floats, eight at a time: each vector's prefix sums by shifting and adding, plus the sum of all
// before.
void sum_row(const float* x, float* out, int64_t n) {
  typedef double Eight __attribute__((vector_size(64)));
  typedef float Narrow __attribute__((vector_size(32)));
  const Eight zero = Eight{} - 0.0;  // -0 changes no value, not even a -0
  double before = -0.0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Narrow v;
    std::memcpy(&v, x + i, sizeof v);
    Eight sum = __builtin_convertvector(v, Eight);
    sum += __builtin_shufflevector(sum, zero, 8, 0, 1, 2, 3, 4, 5, 6);
    sum += __builtin_shufflevector(sum, zero, 8, 8, 0, 1, 2, 3, 4, 5);
    sum += __builtin_shufflevector(sum, zero, 8, 8, 8, 8, 0, 1, 2, 3);
    const double all = before + sum[7];
    v = __builtin_convertvector(sum + before, Narrow);
    std::memcpy(out + i, &v, sizeof v);
    before = all;
  }
  for (; i < n; ++i) out[i] = float(before += x[i]);
}

// `rows` adjacent columns, `block` at most, each over the whole axis.
template <class T, bool product, int64_t block>
[[gnu::noinline]] void scan_columns(const T* x, int64_t stride, T* out, int64_t out_stride, int64_t size,
                                    int64_t rows, bool initial) {
  State<T> state[block];
  for (int64_t j = 0; j < rows; ++j) state[j] = {product ? 1 : 0};
  if (initial) {
    for (int64_t j = 0; j < rows; ++j) out[j] = state[j].get();
    out += out_stride;
  }
  if (size)
    for (int64_t j = 0; j < rows; ++j) state[j].start(x[j]), out[j] = state[j].get();  // preserves the sign of -0
  for (int64_t i = 1; i < size; ++i) {
    const T* const from = x + i * stride;
    T* const to = out + i * out_stride;
    constexpr int64_t line = 64 / sizeof(T), soon = 4;  // rows, which the processor does not see to follow
    for (int64_t j = 0; j < rows; j += line)
      __builtin_prefetch(from + soon * stride + j), __builtin_prefetch(to + soon * out_stride + j, 1);
#pragma GCC ivdep
    for (int64_t j = 0; j < rows; ++j) {
      if constexpr (product) state[j].multiply(from[j]);
      else state[j].add(from[j]);
      to[j] = state[j].get();
    }
  }
}

// `rows` rows whose elements are `step` apart, `block` at most, each over the whole axis.
template <class T, bool product, int64_t block>
[[gnu::noinline]] void scan_rows(const T* x, int64_t stride, int64_t step, T* out, int64_t out_step, int64_t size,
                                 int64_t rows, bool initial) {
  State<T> state[block];
  for (int64_t j = 0; j < rows; ++j) state[j] = {product ? 1 : 0};
  if (initial) {
    for (int64_t j = 0; j < rows; ++j) out[j * out_step] = state[j].get();
    ++out;
  }
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < rows; ++j) {
      const T value = x[i * stride + j * step];
      if (i == 0) state[j].start(value);
      else if constexpr (product) state[j].multiply(value);
      else state[j].add(value);
      out[i + j * out_step] = state[j].get();
    }
}

// Merges the axes before `rows.axis`; false if their strides do not allow it.
bool outer_step(const AxisRows& rows, int64_t& step) {
  step = 0;
  int64_t expected = -1;
  for (int i = rows.axis; i-- > 0;) {
    const int64_t size = rows.x->shape[i], stride = rows.x->strides[i];
    if (size == 1) continue;
    if (expected < 0) step = stride;
    else if (stride != expected) return false;
    expected = size * stride;
  }
  return true;
}

template <class T, bool product>
dvt_status run(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  const AxisRows rows(c->in[0], a.i64(0));
  const bool initial = a.boolean(2);
  const int64_t size = rows.size, out_size = size + initial, inner = rows.inner;
  const T* const x = dvt::data<const T>(c->in[0]);
  T* const out = dvt::data<T>(c->out[0]);
  // Several rows are added up together, so that their additions overlap: contiguous ones, or adjacent columns.
  int64_t step = 1;
  const bool contiguous_rows = inner == 1 && outer_step(rows, step),
             adjacent = !contiguous_rows && rows.inner_is_dense();
  if constexpr (std::is_same_v<T, float> && !product)
    if (inner == 1 && rows.stride == 1 && !initial) {
      dvt::parallel_for(uint64_t(rows.outer), uint64_t(16384 / size + 1),
                        [&](uint64_t begin, uint64_t end, uint32_t) {
                          for (int64_t o = int64_t(begin); o < int64_t(end); ++o)
                            sum_row(x + rows.offset(o, 0), out + o * size, size);
                        });
      return DVT_OK;
    }
  const int64_t together = contiguous_rows ? rows.outer : adjacent ? inner : 1, groups = rows.count() / together;
  // Rows that lie one behind the other are followed at the same time; of adjacent columns long pieces are read.
  constexpr int64_t few = 16, some = 64, many = 512;
  const int64_t threads = int64_t(dvt::host->num_threads(dvt::host)),
                share = groups < threads ? round_up(together / threads, few) : many;
  const int64_t block = contiguous_rows ? few : most(some, least(share, many)), blocks = divide_up(together, block),
                work = out_size * least(together, block) + 1;
  dvt::parallel_for(
      uint64_t(groups * blocks), uint64_t(16384 / work + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
        for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
          const int64_t group = at / blocks, first = at % blocks * block;
          const int64_t n = together - first < block ? together - first : block;
          if (contiguous_rows) {
            scan_rows<T, product, few>(x + first * step, rows.stride, step, out + first * out_size, out_size, size,
                                       n, initial);
          } else {
            const int64_t o = adjacent ? group : group / inner, i = adjacent ? first : group % inner;
            T* const to = out + o * out_size * inner + i;
            scan_columns<T, product, many>(x + rows.offset(o, i), rows.stride, to, inner, size, n, initial);
          }
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
