#include "simd/elementwise.hpp"

#include <cstring>

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
constexpr int64_t chunk = 512;    // elements that are converted or gathered at a time: all buffers stay in L1
constexpr int64_t long_row = 64;  // rows of at least this size are not gathered

// The iteration space: contiguous axes merged where every input allows it. The output is dense.
struct Space {
  int ndim;
  int64_t shape[DVT_MAX_NDIM];
  int64_t stride[max_elementwise_in][DVT_MAX_NDIM];
  const char* data[max_elementwise_in];
};

Space merge(const Elementwise& spec, const dvt_call* c) {
  Space s;
  const DLTensor* out = c->out[0];
  for (int k = 0; k < spec.n_in; ++k) s.data[k] = dvt::data<const char>(c->in[k]);
  int n = 0;
  for (int axis = 0; axis < out->ndim; ++axis) {
    if (out->shape[axis] == 1) continue;
    int64_t step[max_elementwise_in];
    bool joins = n > 0;
    for (int k = 0; k < spec.n_in; ++k) {
      step[k] = c->in[k]->ndim ? c->in[k]->strides[axis] : 0;
      joins = joins && s.stride[k][n - 1] == step[k] * out->shape[axis];
    }
    if (!joins) s.shape[n++] = 1;
    s.shape[n - 1] *= out->shape[axis];
    for (int k = 0; k < spec.n_in; ++k) s.stride[k][n - 1] = step[k];
  }
  if (!n) {
    s.shape[n++] = 1;
    for (int k = 0; k < spec.n_in; ++k) s.stride[k][0] = 1;
  }
  s.ndim = n;
  return s;
}

// A position in the iteration space, advanced element by element of the output.
struct Cursor {
  const Space& space;
  int64_t at[DVT_MAX_NDIM];

  Cursor(const Space& s, int64_t linear) : space(s) {
    for (int axis = s.ndim; axis-- > 0; linear /= s.shape[axis]) at[axis] = linear % s.shape[axis];
  }
  int64_t offset(int k) const {
    int64_t sum = 0;
    for (int axis = 0; axis < space.ndim; ++axis) sum += at[axis] * space.stride[k][axis];
    return sum;
  }
  int64_t left_in_row() const { return space.shape[space.ndim - 1] - at[space.ndim - 1]; }
  // n <= left_in_row()
  void advance(int64_t n) {
    int axis = space.ndim - 1;
    at[axis] += n;
    for (; axis > 0 && at[axis] == space.shape[axis]; --axis) at[axis] = 0, ++at[axis - 1];
  }
};

template <class T>
void gather(const Space& s, int k, Cursor cursor, int64_t n, T* out) {
  const int64_t step = s.stride[k][s.ndim - 1];
  while (n > 0) {
    const int64_t left = cursor.left_in_row(), run = left < n ? left : n;
    const T* from = reinterpret_cast<const T*>(s.data[k]) + cursor.offset(k);
    if (step == 1) std::memcpy(out, from, size_t(run) * sizeof(T));
    else
      for (int64_t i = 0; i < run; ++i) out[i] = from[i * step];
    out += run, n -= run;
    cursor.advance(run);
  }
}
struct Wide {
  uint64_t half[2];
};
void gather(const Space& s, int k, const Cursor& cursor, int64_t n, unsigned bytes, void* out) {
  switch (bytes) {
    case 1: return gather(s, k, cursor, n, static_cast<uint8_t*>(out));
    case 2: return gather(s, k, cursor, n, static_cast<uint16_t*>(out));
    case 4: return gather(s, k, cursor, n, static_cast<uint32_t*>(out));
    case 8: return gather(s, k, cursor, n, static_cast<uint64_t*>(out));
    default: return gather(s, k, cursor, n, static_cast<Wide*>(out));
  }
}

void widen_any(Half half, const void* in, float* out, int64_t n) {
  if (half == Half::f16) widen(static_cast<const f16*>(in), out, n);
  else widen(static_cast<const bf16*>(in), out, n);
}

constexpr bool converts(const Elementwise& spec) { return spec.in_half != Half::no || spec.out_half != Half::no; }
// The loop on operands as they are in memory; nullptr: they have to be converted.
constexpr Loop loop_in_memory(const Elementwise& spec) { return converts(spec) ? spec.stored : spec.loop; }

// How the loop reads an input.
enum class Way : uint8_t { direct, value, gathered };

struct Plan {
  Space space;
  Way way[max_elementwise_in];
  bool rows;  // row by row without copies
};

Plan plan(const Elementwise& spec, const dvt_call* c) {
  Plan p{merge(spec, c), {}, true};
  const Space& s = p.space;
  int values = 0;
  for (int k = 0; k < spec.n_in; ++k) {
    bool constant = true;
    for (int axis = 0; axis < s.ndim; ++axis) constant = constant && s.stride[k][axis] == 0;
    const int64_t inner = s.stride[k][s.ndim - 1];
    p.way[k] = constant ? Way::value : s.ndim == 1 && inner == 1 ? Way::direct : Way::gathered;
    values += inner == 0;
    p.rows = p.rows && (inner == 1 || (inner == 0 && spec.scalars));
  }
  p.rows = p.rows && values < spec.n_in && loop_in_memory(spec) && (s.ndim == 1 || s.shape[s.ndim - 1] >= long_row);
  return p;
}

// Elements [begin, end) of the output, row by row.
void run_rows(const Elementwise& spec, const Plan& p, char* out, int64_t begin, int64_t end) {
  const Space& s = p.space;
  const Loop loop = loop_in_memory(spec);
  int64_t step[max_elementwise_in];
  for (int k = 0; k < spec.n_in; ++k) step[k] = s.stride[k][s.ndim - 1];
  Cursor cursor(s, begin);
  while (begin < end) {
    const int64_t left = cursor.left_in_row(), n = left < end - begin ? left : end - begin;
    const void* in[max_elementwise_in];
    for (int k = 0; k < spec.n_in; ++k) in[k] = s.data[k] + cursor.offset(k) * spec.in_bytes[k];
    loop(in, step, out + begin * spec.out_bytes, n);
    begin += n;
    cursor.advance(n);
  }
}

// Elements [begin, end) of the output, a chunk at a time; inputs that are strided, fp16 or bf16 go through
// buffers.
void run_chunks(const Elementwise& spec, const Plan& p, char* out, int64_t begin, int64_t end) {
  alignas(64) char buffer[max_elementwise_in][chunk * 16];
  alignas(64) char raw[chunk * 2], result[chunk * 4];
  const Space& s = p.space;
  const bool narrows = spec.out_half != Half::no;
  const auto widens = [&](int k) { return spec.in_half != Half::no && spec.in_bytes[k] == 2; };
  int64_t step[max_elementwise_in];
  int left_dense = spec.n_in;
  for (int k = 0; k < spec.n_in; ++k) {
    step[k] = 1;
    if (p.way[k] != Way::value) continue;
    // One value: repeated in the buffer, unless the loop accepts a scalar.
    const bool as_is = spec.scalars && --left_dense > 0;
    const int64_t copies = as_is ? 1 : chunk < end - begin ? chunk : end - begin;
    Cursor start(s, 0);
    gather(s, k, start, 1, spec.in_bytes[k], widens(k) ? raw : buffer[k]);
    if (widens(k)) widen_any(spec.in_half, raw, reinterpret_cast<float*>(buffer[k]), 1);
    const size_t bytes = widens(k) ? 4 : spec.in_bytes[k];
    for (int64_t i = 1; i < copies; ++i) std::memcpy(buffer[k] + size_t(i) * bytes, buffer[k], bytes);
    if (as_is) step[k] = 0;
  }
  Cursor cursor(s, begin);
  while (begin < end) {
    const int64_t n = chunk < end - begin ? chunk : end - begin;
    const void* in[max_elementwise_in];
    for (int k = 0; k < spec.n_in; ++k) {
      in[k] = buffer[k];
      if (p.way[k] == Way::value) continue;
      const char* direct = s.data[k] + begin * spec.in_bytes[k];
      if (p.way[k] == Way::gathered) gather(s, k, cursor, n, spec.in_bytes[k], widens(k) ? raw : buffer[k]);
      if (widens(k))
        widen_any(spec.in_half, p.way[k] == Way::direct ? direct : raw, reinterpret_cast<float*>(buffer[k]), n);
      else if (p.way[k] == Way::direct) in[k] = direct;
    }
    char* to = out + begin * spec.out_bytes;
    spec.loop(in, step, narrows ? result : to, n);
    if (spec.out_half == Half::f16) narrow(reinterpret_cast<const float*>(result), reinterpret_cast<f16*>(to), n);
    else if (narrows) narrow(reinterpret_cast<const float*>(result), reinterpret_cast<bf16*>(to), n);
    begin += n;
    for (int64_t rest = n; rest > 0;) {
      const int64_t left = cursor.left_in_row(), hop = left < rest ? left : rest;
      cursor.advance(hop);
      rest -= hop;
    }
  }
}

// All elements in one run of the loop: dense or scalar operands. False: not applicable.
bool run_at_once(const Elementwise& spec, const dvt_call* c, int64_t n) {
  const DLTensor* out = c->out[0];
  const Loop loop = loop_in_memory(spec);
  if (!loop || out->ndim > 1 || n > int64_t(spec.grain)) return false;
  const void* in[max_elementwise_in];
  int64_t step[max_elementwise_in];
  int values = 0;
  for (int k = 0; k < spec.n_in; ++k) {
    const DLTensor* t = c->in[k];
    in[k] = dvt::data<const char>(t);
    step[k] = n == 1 ? 1 : t->ndim == 0 ? 0 : t->strides[0];
    if (step[k] == 0 && spec.scalars) ++values;
    else if (step[k] != 1) return false;
  }
  if (values == spec.n_in) return false;
  loop(in, step, dvt::data<char>(out), n);
  return true;
}
}  // namespace

dvt_status run_elementwise(const Elementwise& spec, const dvt_call* c) {
  const int64_t n = dvt::size(c->out[0]);
  if (run_at_once(spec, c, n)) return DVT_OK;
  if (n == 0) return DVT_OK;
  const Plan p = plan(spec, c);
  char* out = dvt::data<char>(c->out[0]);
  dvt::parallel_for(uint64_t(n), spec.grain, [&](uint64_t begin, uint64_t end, uint32_t) {
    if (p.rows) run_rows(spec, p, out, int64_t(begin), int64_t(end));
    else run_chunks(spec, p, out, int64_t(begin), int64_t(end));
  });
  return DVT_OK;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
