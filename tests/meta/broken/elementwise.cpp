// Elementwise kernels, each with one fault.
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "broken.hpp"

namespace {
// The right kernel's loop; a host scalar has no axes and is read repeatedly.
template <class T, class F>
void unary(const dvt_call* c, F f) {
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    element<T>(c->out[0], i) = T(f(element<T>(c->in[0], i)));
}
template <class T, class F>
void binary(const dvt_call* c, F f, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i)
    element<T>(c->out[0], i) = T(f(element<T>(c->in[0], i), element<T>(c->in[1], i)));
}
template <class T, class F>
void binary(const dvt_call* c, F f) {
  binary<T>(c, f, 0, dvt::size(c->out[0]));
}
// The same for operands whose elements at(tensor, i) finds.
template <class F, class At>
void binary_at(const dvt_call* c, F f, At at) {
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    element<float>(c->out[0], i) = f(at(c->in[0], i), at(c->in[1], i));
}
float add(float a, float b) { return a + b; }
float times(float a, float b) { return a * b; }
float minus(float a, float b) { return a - b; }

// ---- which elements ---------------------------------------------------------------------------------------------

void last_element(const dvt_call* c) { binary<float>(c, times, 0, dvt::size(c->out[0]) - 1); }

void rest_of_vector(const dvt_call* c) {
  const int64_t n = dvt::size(c->out[0]);
  binary<float>(c, add, 0, n < 8 ? n : n / 8 * 8);
}

void large_index(const dvt_call* c) {  // 10 bits for the index
  const int64_t n = dvt::size(c->out[0]);
  binary<float>(c, minus, 0, n < 1024 ? n : 1024);
}

void ignores_strides(const dvt_call* c) {
  binary_at(c, times, [](const DLTensor* t, int64_t i) {
    return dvt::data<float>(t)[t->ndim && t->strides[t->ndim - 1] ? i : 0];
  });
}

void ignores_broadcast(const dvt_call* c) {
  binary_at(c, minus, [](const DLTensor* t, int64_t i) {
    return t->ndim > 1 && !t->strides[0] ? dvt::data<float>(t)[i] : element<float>(t, i);
  });
}

void aligned_loads(const dvt_call* c) {
  binary_at(c, add, [](const DLTensor* t, int64_t i) {
    DLTensor aligned = *t;
    if (t->ndim) aligned.data = reinterpret_cast<void*>(uintptr_t(t->data) & ~uintptr_t{15});
    return element<float>(&aligned, i);
  });
}

void scalar_as_array(const dvt_call* c) {  // only its first element was filled
  binary_at(c, times, [](const DLTensor* t, int64_t i) { return t->ndim || !i ? element<float>(t, i) : 0; });
}

void past_the_end(const dvt_call* c) {
  binary<float>(c, times);
  dvt::data<float>(c->out[0])[dvt::size(c->out[0])] = 77;
}

void before_the_start(const dvt_call* c) {
  binary<float>(c, add);
  dvt::data<float>(c->out[0])[-1] = 77;
}

void writes_operand(const dvt_call* c) {
  binary<float>(c, times);
  if (c->in[0]->ndim) dvt::data<float>(c->in[0])[0] = 77;
}

void clears_first(const dvt_call* c) {  // wrong if the output is an operand's memory
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i) element<float>(c->out[0], i) = 0;
  for (const DLTensor* x : {c->in[0], c->in[1]})
    for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i) element<float>(c->out[0], i) += element<float>(x, i);
}

// ---- which values -----------------------------------------------------------------------------------------------

void drops_nan(const dvt_call* c) { binary<float>(c, fmaxf); }

void flushes_subnormals(const dvt_call* c) {
  binary<float>(c, [](float a, float b) {
    const float x = a * b;
    return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x;
  });
}

void reads_subnormals_as_zero(const dvt_call* c) {
  unary<float>(c, [](float x) { return std::fabs(x) < FLT_MIN ? -INFINITY : std::log(double(x)); });
}

void negative_zero(const dvt_call* c) {
  unary<float>(c, [](float x) { return std::floor(x) + 0.0f; });
}

void equal_bits(const dvt_call* c) {
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    element<bool>(c->out[0], i) = !std::memcmp(&element<float>(c->in[0], i), &element<float>(c->in[1], i), 4);
}

void saturates(const dvt_call* c) {
  binary<int32_t>(
      c, [](int64_t a, int64_t b) { return std::min<int64_t>(std::max<int64_t>(a + b, INT32_MIN), INT32_MAX); });
}

void long_through_int(const dvt_call* c) {
  binary<int64_t>(c, [](int64_t a, int64_t b) { return int32_t(uint32_t(a) * uint32_t(b)); });
}

void int_through_float(const dvt_call* c) {
  binary<int32_t>(c, [](int32_t a, int32_t b) { return uint32_t(int64_t(float(a) - float(b))); });
}

void unsigned_as_signed(const dvt_call* c) {
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    element<bool>(c->out[0], i) = element<int32_t>(c->in[0], i) < element<int32_t>(c->in[1], i);
}

void shift_modulo(const dvt_call* c) {  // as many processors' instructions do
  binary<int32_t>(c, [](int32_t a, int32_t b) { return uint32_t(a) << (b & 31); });
}

void traps_on_zero(const dvt_call* c) {
  binary<int32_t>(c, [](int32_t a, int32_t b) {
    if (!b) std::raise(SIGFPE);
    return b == -1 ? -int64_t{a} : a / b;
  });
}

// ---- how exactly ------------------------------------------------------------------------------------------------

void divides_by_reciprocal(const dvt_call* c) {
  binary<float>(c, [](float a, float b) { return a * (1 / b); });
}

void root_by_reciprocal(const dvt_call* c) {  // 0 * inf is NaN
  unary<float>(c, [](float x) { return float(x * (1 / std::sqrt(double(x)))); });
}

void fast_exp(const dvt_call* c) {
  unary<float>(c, [](float x) { return std::exp(double(x)) * (1 + 1e-5); });
}

void short_pi(const dvt_call* c) {  // the argument is reduced by a 24-bit pi
  unary<float>(c, [](float x) { return std::sin(std::remainder(double(x), 2 * double(3.14159274f))); });
}

// ---- crashes and hangs ------------------------------------------------------------------------------------------

dvt_status writes_nothing(dvt_device*, const dvt_call*) { return DVT_OK; }

dvt_status keeps_call(dvt_device* d, const dvt_call* c) {
  static const dvt_call* last = nullptr;  // read after it became invalid, as by a late worker thread
  if (last && dvt::size(last->out[0]) < 0) return DVT_FAIL(DVT_INTERNAL, "[multiply] a negative size");
  last = c;
  return good.row("dvt.multiply", {dvt::f32}).run(d, c);
}

void crashes(const dvt_call*) { std::abort(); }

void hangs(const dvt_call*) {
  for (;;) sleep(1);
}

void leaks(const dvt_call* c) {
  static char* volatile last;
  last = static_cast<char*>(std::malloc(1 << 16));
  std::memset(last, 1, 1 << 16);
  unary<float>(c, [](float x) { return std::exp(double(x)); });
}

dvt_status no_code(dvt_device*, const dvt_call*) {
  return DVT_FAIL(DVT_INTERNAL, "[sqrt] no code for this processor");
}

// A row without code: sqrt in float16.
void declares_too_much(Device& d) {
  static const dvt_operand operands[] = {{dvt::f16, DVT_O_STRIDED, 0, 0}, {dvt::f16, 0, 0, 0}};
  dvt_kernel row = d.row("dvt.sqrt", {dvt::f32});
  row.operands = operands, row.run = no_code;
  d.rows.push_back(row);
}

void declares_more_exact(Device& d) { d.row("dvt.exp", {dvt::f32}).max_ulp = 0.25f; }
}  // namespace

Faults elementwise_faults() {
  using dvt::f32, dvt::i32, dvt::i64, dvt::u32;
  return {
      in_row("last_element", "dvt.multiply", {f32}, run<last_element>),
      in_row("rest_of_vector", "dvt.add", {f32}, run<rest_of_vector>),
      in_row("large_index", "dvt.subtract", {f32}, run<large_index>),
      in_row("ignores_strides", "dvt.multiply", {f32}, run<ignores_strides>),
      in_row("ignores_broadcast", "dvt.subtract", {f32}, run<ignores_broadcast>),
      in_row("aligned_loads", "dvt.add", {f32}, run<aligned_loads>),
      in_row("scalar_as_array", "dvt.multiply", {f32}, run<scalar_as_array>),
      in_row("past_the_end", "dvt.multiply", {f32}, run<past_the_end>),
      in_row("before_the_start", "dvt.add", {f32}, run<before_the_start>),
      in_row("writes_operand", "dvt.multiply", {f32}, run<writes_operand>),
      in_row("clears_first", "dvt.add", {f32}, run<clears_first>),
      in_row("drops_nan", "dvt.maximum", {f32}, run<drops_nan>),
      in_row("flushes_subnormals", "dvt.multiply", {f32}, run<flushes_subnormals>),
      in_row("reads_subnormals_as_zero", "dvt.log", {f32}, run<reads_subnormals_as_zero>),
      in_row("negative_zero", "dvt.floor", {f32}, run<negative_zero>),
      in_row("equal_bits", "dvt.equal", {f32}, run<equal_bits>),
      in_row("saturates", "dvt.add", {i32}, run<saturates>),
      in_row("long_through_int", "dvt.multiply", {i64}, run<long_through_int>),
      in_row("int_through_float", "dvt.subtract", {i32}, run<int_through_float>),
      in_row("unsigned_as_signed", "dvt.less", {u32}, run<unsigned_as_signed>),
      in_row("shift_modulo", "dvt.bitwise_left_shift", {i32}, run<shift_modulo>),
      in_row("traps_on_zero", "dvt.quotient", {i32}, run<traps_on_zero>),
      in_row("divides_by_reciprocal", "dvt.divide", {f32}, run<divides_by_reciprocal>),
      in_row("root_by_reciprocal", "dvt.sqrt", {f32}, run<root_by_reciprocal>),
      in_row("fast_exp", "dvt.exp", {f32}, run<fast_exp>),
      in_row("short_pi", "dvt.sin", {f32}, run<short_pi>),
      in_row("writes_nothing", "dvt.multiply", {f32}, writes_nothing),
      in_row("keeps_call", "dvt.multiply", {f32}, keeps_call),
      in_row("crashes", "dvt.exp", {f32}, run<crashes>),
      in_row("hangs", "dvt.exp", {f32}, run<hangs>),
      in_row("leaks_on_host", "dvt.exp", {f32}, run<leaks>),
      {"declares_too_much", declares_too_much},
      {"declares_more_exact", declares_more_exact},
  };
}
