// Kernels for reductions, products, copies, indexing and random numbers, each with one fault.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "broken.hpp"
#include "half.hpp"

namespace {
// ---- reductions -------------------------------------------------------------------------------------------------

// f(result so far, term) over the terms of each result, in row-major order from the element `start`.
template <class T, class Acc, class F>
void fold(const dvt_call* c, Acc first, F f, int64_t start = 0) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  const dvt::Ints axes = dvt::Attrs(c).i64s(0);
  std::vector<Acc> results(size_t(dvt::size(out)), first);
  for (int64_t i = 0, n = dvt::size(x); i < n; ++i) {
    int64_t rest = (i + start) % n, result = 0, step = 1;
    const int64_t element_number = rest;
    for (int axis = x->ndim - 1; axis >= 0; rest /= x->shape[axis--]) {
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
      result += rest % x->shape[axis] * step, step *= x->shape[axis];
    }
    results[result] = Acc(f(results[result], element<T>(x, element_number)));
  }
  for (size_t i = 0; i < results.size(); ++i) dvt::data<T>(out)[i] = T(results[i]);
}

void sums_in_half(const dvt_call* c) {
  fold<float>(c, f16(0), [](f16 sum, float x) { return float(sum) + x; });
}

void sum_of_nothing(const dvt_call* c) {
  if (dvt::size(c->in[0])) fold<float>(c, 0.0, [](double sum, float x) { return sum + x; });
}

void sums_as_they_come(const dvt_call* c) {
  static std::atomic<int64_t> calls{0};
  fold<float>(c, 0.0f, [](float sum, float x) { return sum + x; }, 509 * calls++);
}

void max_drops_nan(const dvt_call* c) {
  fold<float>(c, -INFINITY, [](float most, float x) { return x > most ? x : most; });
}

void max_from_zero(const dvt_call* c) {
  fold<int32_t>(c, 0, [](int32_t most, int32_t x) { return x > most ? x : most; });
}

// ---- matmul -----------------------------------------------------------------------------------------------------

// The product of matrices with batches, the first `terms` terms of each; f rounds each factor as the
// multiplier does.
template <class F>
void matmul(const dvt_call* c, F f, int64_t terms) {
  const DLTensor *a = c->in[0], *b = c->in[1], *out = c->out[0];
  const bool rows = a->ndim > 1, columns = b->ndim > 1;
  for (int64_t i = 0, n = dvt::size(out); i < n; ++i) {
    int64_t rest = i, at_a = 0, at_b = 0;
    for (int axis = out->ndim - 1; axis >= 0; rest /= out->shape[axis--]) {
      const int64_t index = rest % out->shape[axis];
      const int from_end = out->ndim - 1 - axis;  // among the axes of the output
      if (columns && from_end == 0) at_b += index * b->strides[b->ndim - 1];
      else if (rows && from_end == columns) at_a += index * a->strides[a->ndim - 2];
      else {
        const int batch = from_end - rows - columns;
        const int in_a = a->ndim - 3 - batch, in_b = b->ndim - 3 - batch;
        if (in_a >= 0 && a->shape[in_a] > 1) at_a += index * a->strides[in_a];
        if (in_b >= 0 && b->shape[in_b] > 1) at_b += index * b->strides[in_b];
      }
    }
    const int64_t step_a = a->strides[a->ndim - 1], step_b = b->strides[columns ? b->ndim - 2 : 0];
    double sum = 0;
    for (int64_t k = 0; k < terms; ++k)
      sum += double(f(dvt::data<float>(a)[at_a + k * step_a])) * f(dvt::data<float>(b)[at_b + k * step_b]);
    dvt::data<float>(out)[i] = float(sum);
  }
}
int64_t terms_of(const dvt_call* c) { return c->in[0]->shape[c->in[0]->ndim - 1]; }

void short_factors(const dvt_call* c) {
  matmul(c, [](float x) { return float(bf16(x)); }, terms_of(c));
}

void whole_tiles(const dvt_call* c) {
  const int64_t n = terms_of(c);
  matmul(c, [](float x) { return x; }, n < 16 ? n : n / 16 * 16);
}

// ---- copies -----------------------------------------------------------------------------------------------------

template <class To, class From, class F>
void cast(const dvt_call* c, F f) {
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    element<To>(c->out[0], i) = f(element<From>(c->in[0], i));
}

void truncates(const dvt_call* c) {
  cast<bf16, float>(c, [](float x) {
    bf16 y(x);  // for NaN
    if (x == x) std::memcpy(&y, reinterpret_cast<char*>(&x) + 2, 2);
    return y;
  });
}

void half_saturates(const dvt_call* c) {
  cast<f16, float>(
      c, [](float x) { return std::fabs(x) > 65504 && !std::isinf(x) ? f16(std::copysign(65504.0f, x)) : f16(x); });
}

void rounds_to_int(const dvt_call* c) {
  cast<int32_t, float>(c, [](float x) { return convert<int32_t>(std::nearbyint(x)); });
}

void byte_to_bool(const dvt_call* c) {  // a number's lowest byte is zero more often than the number
  cast<bool, int32_t>(c, [](int32_t x) { return (x & 255) != 0; });
}

void innermost_stride(const dvt_call* c) {  // of its operand; the other axes are read as dense
  DLTensor x = *c->in[0];
  int64_t strides[DVT_MAX_NDIM];
  for (int axis = x.ndim - 1; axis >= 0; --axis)
    strides[axis] = axis == x.ndim - 1 ? x.strides[axis] : strides[axis + 1] * x.shape[axis + 1];
  x.strides = strides;
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    element<float>(c->out[0], i) = element<float>(x.ndim ? &x : c->in[0], i);
}

void full_through_double(const dvt_call* c) {
  const dvt_attr& value = c->attr[1];
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i)
    dvt::data<int64_t>(c->out[0])[i] = int64_t(value.kind == DVT_A_F64 ? value.v.f : double(value.v.i));
}

void iota_in_half(const dvt_call* c) {
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i) dvt::data<float>(c->out[0])[i] = float(f16(float(i)));
}

// ---- indexing ---------------------------------------------------------------------------------------------------

// take for 4-byte elements; index(given, size of the axis) is the index that it reads.
template <class F>
void take(const dvt_call* c, F index) {
  const DLTensor *x = c->in[0], *indices = c->in[1];
  const int64_t axis = dvt::Attrs(c).i64(0), n = dvt::size(indices);
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x->ndim; ++i)
    if (i != axis) (i < axis ? outer : inner) *= x->shape[i];
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t k = index(dvt::data<int64_t>(indices)[j], x->shape[axis]);
      std::memcpy(dvt::data<uint32_t>(c->out[0]) + (i * n + j) * inner,
                  dvt::data<uint32_t>(x) + (i * x->shape[axis] + k) * inner, size_t(inner) * 4);
    }
}

int64_t clamp(int64_t i, int64_t size) { return i < 0 ? 0 : i < size ? i : size - 1; }

void clamps_index(const dvt_call* c) {
  take(c, [](int64_t i, int64_t size) { return clamp(i < 0 ? i + size : i, size); });
}

void negative_index(const dvt_call* c) {
  const int64_t axis = dvt::Attrs(c).i64(0);
  take(c, [axis](int64_t i, int64_t size) {
    if (i < 0 || i >= size) bad_index(i, axis, size);
    return clamp(i, size);
  });
}

// Writes the rows of the update only: the rest of the result should be x.
void scatters_into_nothing(const dvt_call* c) {
  const int64_t axis = dvt::Attrs(c).i64(0);
  const DLTensor *x = c->in[0], *indices = c->in[1], *updates = c->in[2], *out = c->out[0];
  if (axis || updates->ndim != x->ndim || updates->shape[0] != indices->shape[0]) return;
  const int64_t row = dvt::size(x) / x->shape[0];
  for (int64_t i = 0, n = dvt::size(updates); i < n; ++i) {
    int64_t k = dvt::data<int64_t>(indices)[i / row];
    if (k < 0) k += x->shape[0];
    if (k < 0 || k >= x->shape[0]) return bad_index(k, 0, x->shape[0]);
    dvt::data<uint32_t>(out)[k * row + i % row] = element<uint32_t>(updates, i);
  }
}

// ---- random numbers ---------------------------------------------------------------------------------------------

// Philox4x32-10. The right counter of a block of four words is offset + block, in 64 bits.
using Counter = uint64_t (*)(uint64_t offset, uint64_t block);
uint64_t right(uint64_t offset, uint64_t block) { return offset + block; }
uint64_t from_one(uint64_t offset, uint64_t block) { return offset + block + 1; }
uint64_t without_carry(uint64_t offset, uint64_t block) {
  return (offset & 0xFFFFFFFF00000000) | uint32_t(offset + block);
}

template <Counter counter, int rounds = 10>
void random_bits(const dvt_call* c) {
  const uint32_t* key = dvt::data<uint32_t>(c->in[0]);
  uint32_t* out = dvt::data<uint32_t>(c->out[0]);
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; i += 4) {
    const uint64_t number = counter(key[2] | uint64_t{key[3]} << 32, uint64_t(i) / 4);
    uint32_t word[4] = {uint32_t(number), uint32_t(number >> 32), 0, 0}, k0 = key[0], k1 = key[1];
    for (int round = 0; round < rounds; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
      const uint64_t p = uint64_t{word[0]} * 0xD2511F53, q = uint64_t{word[2]} * 0xCD9E8D57;
      const uint32_t next[4] = {uint32_t(q >> 32) ^ word[1] ^ k0, uint32_t(q), uint32_t(p >> 32) ^ word[3] ^ k1,
                                uint32_t(p)};
      std::memcpy(word, next, sizeof word);
    }
    std::memcpy(out + i, word, size_t(std::min<int64_t>(n - i, 4)) * 4);
  }
}
// The kernel is right, and declines every call: the decomposition runs.
dvt_status declines(dvt_device*, const dvt_call*, dvt_answer* answer) {
  answer->level = 0;
  DVT_PUT(answer, dvt_answer, reason, "not yet");
  return DVT_UNSUPPORTED;
}
}  // namespace

void complete(Device& d) {
  static dvt::Row row("dvt.random_bits", run<random_bits<right>>);
  d.rows.push_back(row.in(dvt::u32).out(dvt::u32).deterministic().kernel());
}

Faults other_kernel_faults() {
  using dvt::any, dvt::f32, dvt::i32, dvt::i64, dvt::u32;
  return {
      in_row("sums_in_half", "dvt.sum", {f32}, run<sums_in_half>),
      in_row("sum_of_nothing", "dvt.sum", {f32}, run<sum_of_nothing>),
      in_row("sums_as_they_come", "dvt.sum", {f32}, run<sums_as_they_come>),
      in_row("max_drops_nan", "dvt.max", {f32}, run<max_drops_nan>),
      in_row("max_from_zero", "dvt.max", {i32}, run<max_from_zero>),
      in_row("short_factors", "dvt.matmul", {f32}, run<short_factors>),
      in_row("whole_tiles", "dvt.matmul", {f32}, run<whole_tiles>),
      in_row("truncates", "dvt.astype", {f32, dvt::bf16}, run<truncates>),
      in_row("half_saturates", "dvt.astype", {f32, dvt::f16}, run<half_saturates>),
      in_row("rounds_to_int", "dvt.astype", {f32, i32}, run<rounds_to_int>),
      in_row("byte_to_bool", "dvt.astype", {i32, dvt::boolean}, run<byte_to_bool>),
      in_row("innermost_stride", "dvt.copy", {any(32)}, run<innermost_stride>),
      in_row("full_through_double", "dvt.full", {i64}, run<full_through_double>),
      in_row("iota_in_half", "dvt.iota", {f32}, run<iota_in_half>),
      in_row("clamps_index", "dvt.take", {any(32)}, run<clamps_index>),
      in_row("negative_index", "dvt.take", {any(32)}, run<negative_index>),
      in_row("scatters_into_nothing", "dvt.scatter", {any(32)}, run<scatters_into_nothing>),
      in_row("counts_from_one", "dvt.random_bits", {u32}, run<random_bits<from_one>>),
      in_row("counter_carry", "dvt.random_bits", {u32}, run<random_bits<without_carry>>),
      {"declines_what_it_can", [](Device& d) { d.row("dvt.random_bits", {u32}).query = declines; }},
      in_row("seven_rounds", "dvt.random_bits", {u32}, run<random_bits<right, 7>>),
  };
}
