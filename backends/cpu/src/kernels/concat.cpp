// concat and stack: each array is copied to its part of the result, by byte size.
#include "simd/strided_copy.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// A part of `out` that has `like`'s shape; the strides and where it begins are set afterwards.
struct Part {
  DLTensor view;
  int64_t strides[DVT_MAX_NDIM];
  Part(const DLTensor* out, const DLTensor* like) : view(*out) {
    view.shape = like->shape, view.ndim = like->ndim, view.strides = strides;
  }
  void begin_at(int64_t element) { view.byte_offset += uint64_t(element) * view.dtype.bits / 8; }
};

template <class T>
dvt_status concat(dvt_device*, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const dvt::Attrs attrs(c);
  const bool flat = !attrs.given(0);
  const int64_t axis = attrs.i64(0);
  int64_t at = 0;
  for (uint32_t i = 0; i < c->n_in; ++i) {
    const DLTensor* x = c->in[i];
    const int64_t n = dvt::size(x);
    if (n == 0) continue;
    Part part(out, x);
    for (int64_t k = x->ndim, step = 1; k-- > 0; step *= x->shape[k])
      part.strides[k] = flat ? step : out->strides[k];
    part.begin_at(flat ? at : at * out->strides[axis]);
    copy_strided<T>(x, &part.view);
    at += flat ? n : x->shape[axis];
  }
  return DVT_OK;
}

template <class T>
dvt_status stack(dvt_device*, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const int64_t axis = dvt::Attrs(c).i64(0);
  for (uint32_t i = 0; i < c->n_in; ++i) {
    const DLTensor* x = c->in[i];
    Part part(out, x);
    for (int64_t k = 0; k < x->ndim; ++k) part.strides[k] = out->strides[k < axis ? k : k + 1];
    part.begin_at(i * out->strides[axis]);
    copy_strided<T>(x, &part.view);
  }
  return DVT_OK;
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](const char* op, unsigned bits, dvt::Row::Run run) {
    dvt::Row row(op, run);
    row.in(dvt::any(bits), DVT_O_STRIDED | DVT_O_VARIADIC).out(dvt::any(bits)).deterministic();
    t.add(row.kernel());
  };
  const auto both = [&](unsigned bits, dvt::Row::Run run_concat, dvt::Row::Run run_stack) {
    add("dvt.concat", bits, run_concat);
    add("dvt.stack", bits, run_stack);
  };
  both(8, concat<uint8_t>, stack<uint8_t>);
  both(16, concat<uint16_t>, stack<uint16_t>);
  both(32, concat<uint32_t>, stack<uint32_t>);
  both(64, concat<uint64_t>, stack<uint64_t>);
  both(128, concat<Pair>, stack<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
