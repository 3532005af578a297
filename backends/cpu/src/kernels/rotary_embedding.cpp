// rotary_embedding: pairs of elements of each row rotated by the angles of its position.
#include <cstring>

#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
constexpr int64_t block = 256;  // pairs that are widened at a time

// Pairs (a[i * step], b[i * step]); the results may lie where a and b lie.
template <class T>
void rotate(const T* a, const T* b, const T* cos, const T* sin, T* to_a, T* to_b, int64_t step, int64_t n) {
  if (step == 1) {
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
      const T x = a[i], y = b[i];
      to_a[i] = x * cos[i] - y * sin[i];
      to_b[i] = y * cos[i] + x * sin[i];
    }
    return;
  }
  DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
    const T x = a[2 * i], y = a[2 * i + 1];
    to_a[2 * i] = x * cos[i] - y * sin[i];
    to_a[2 * i + 1] = y * cos[i] + x * sin[i];
  }
}
template <class Half>
void rotate_half(const Half* a, const Half* b, const Half* cos, const Half* sin, Half* to_a, Half* to_b,
                 int64_t step, int64_t n) {
  float x[2 * block], y[block], c[block], s[block];
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block, at = i * step;
    widen(a + at, x, m * step);
    if (step == 1) widen(b + at, y, m);
    widen(cos + i, c, m);
    widen(sin + i, s, m);
    rotate<float>(x, y, c, s, x, y, step, m);
    narrow(x, to_a + at, m * step);
    if (step == 1) narrow(y, to_b + at, m);
  }
}
void rotate(const f16* a, const f16* b, const f16* c, const f16* s, f16* x, f16* y, int64_t step, int64_t n) {
  rotate_half(a, b, c, s, x, y, step, n);
}
void rotate(const bf16* a, const bf16* b, const bf16* c, const bf16* s, bf16* x, bf16* y, int64_t step, int64_t n) {
  rotate_half(a, b, c, s, x, y, step, n);
}

// Where the rows of x and of the tables begin: the tables broadcast to x's axes before the last one.
struct Rows {
  const DLTensor* x;
  int64_t table[DVT_MAX_NDIM];
  Rows(const DLTensor* x, const DLTensor* cos) : x(x) {
    const int missing = x->ndim - cos->ndim;
    for (int i = 0; i + 1 < x->ndim; ++i)
      table[i] = i < missing || cos->shape[i - missing] == 1 ? 0 : cos->strides[i - missing];
  }
  void locate(int64_t row, int64_t& from, int64_t& angles) const {
    from = angles = 0;
    for (int i = x->ndim - 1; i-- > 0; row /= x->shape[i]) {
      from += row % x->shape[i] * x->strides[i];
      angles += row % x->shape[i] * table[i];
    }
  }
};

template <class T>
dvt_status run(dvt_device*, const dvt_call* c) {
  const DLTensor *x = c->in[0], *tables = c->in[1];
  const bool interleaved = dvt::Attrs(c).boolean(0);
  const int64_t size = x->shape[x->ndim - 1], pairs = tables->shape[tables->ndim - 1], step = interleaved ? 2 : 1;
  const T *in = dvt::data<const T>(x), *cos = dvt::data<const T>(tables), *sin = dvt::data<const T>(c->in[2]);
  T* out = dvt::data<T>(c->out[0]);
  const Rows rows(x, tables);
  dvt::parallel_for(uint64_t(dvt::size(x) / size), uint64_t(1 + 16384 / size),
                    [&, size, pairs, step](uint64_t begin, uint64_t end, uint32_t) {
                      for (uint64_t row = begin; row < end; ++row) {
                        int64_t at, angles;
                        rows.locate(int64_t(row), at, angles);
                        const T* from = in + at;
                        T* to = out + int64_t(row) * size;
                        const int64_t second = interleaved ? 1 : pairs;
                        rotate(from, from + second, cos + angles, sin + angles, to, to + second, step, pairs);
                        if (to != from)
                          std::memcpy(static_cast<void*>(to + 2 * pairs), from + 2 * pairs,
                                      size_t(size - 2 * pairs) * sizeof(T));
                      }
                    });
  return DVT_OK;
}

// x may have any strides but on its last axis.
dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const DLTensor* x = c->in[0];
  if (x->shape[x->ndim - 1] != 1 && x->strides[x->ndim - 1] != 1) {
    DVT_PUT(answer, dvt_answer, need_compact, 1);
    DVT_PUT(answer, dvt_answer, reason, "the last axis of x is not contiguous");
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}

template <class T>
void add(Table& t, DLDataType type) {
  dvt::Row row("dvt.rotary_embedding", run<T>);
  row.in(type, DVT_O_STRIDED | DVT_O_ALIAS).in(type).in(type).out(type).query(query).deterministic();
  t.add(row.kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add<float>(t, dvt::f32);
  add<double>(t, dvt::f64);
  add<f16>(t, dvt::f16);
  add<bf16>(t, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
