// dynamic_slice and dynamic_update_slice: a region that begins where an operand says, by byte size.
#include "simd/strided_copy.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// The region of `whole` that has `like`'s shape. Starts are clamped so that it lies within.
DLTensor region(const DLTensor* whole, const DLTensor* like, const DLTensor* starts, dvt::Ints axes) {
  DLTensor part = *whole;
  part.shape = like->shape;
  const int64_t* given = dvt::data<const int64_t>(starts);
  for (uint32_t i = 0; i < axes.count; ++i) {
    const int64_t axis = axes[i], most = whole->shape[axis] - like->shape[axis];
    const int64_t start = given[i] < 0 ? 0 : given[i] > most ? most : given[i];
    part.byte_offset += uint64_t(start * whole->strides[axis] * (whole->dtype.bits / 8));
  }
  return part;
}

template <class T>
dvt_status slice(dvt_device*, const dvt_call* c) {
  const DLTensor part = region(c->in[0], c->out[0], c->in[1], dvt::Attrs(c).i64s(1));
  copy_strided<T>(&part, c->out[0]);
  return DVT_OK;
}

template <class T>
dvt_status update_slice(dvt_device*, const dvt_call* c) {
  const DLTensor *x = c->in[0], *update = c->in[1], *out = c->out[0];
  if (dvt::data<T>(x) != dvt::data<T>(out)) copy_strided<T>(x, out);
  if (dvt::size(update) == 0) return DVT_OK;
  const DLTensor part = region(out, update, c->in[2], dvt::Attrs(c).i64s(0));
  copy_strided<T>(update, &part);
  return DVT_OK;
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run_slice, dvt::Row::Run run_update) {
    const DLDataType type = dvt::any(bits);
    dvt::Row row("dvt.dynamic_slice", run_slice), update("dvt.dynamic_update_slice", run_update);
    row.in(type, DVT_O_STRIDED).in(dvt::i64, DVT_O_HOST_SCALAR).out(type).deterministic();
    update.in(type, DVT_O_ALIAS).in(type, DVT_O_STRIDED).in(dvt::i64, DVT_O_HOST_SCALAR).out(type).deterministic();
    t.add(row.kernel());
    t.add(update.kernel());
  };
  add(8, slice<uint8_t>, update_slice<uint8_t>);
  add(16, slice<uint16_t>, update_slice<uint16_t>);
  add(32, slice<uint32_t>, update_slice<uint32_t>);
  add(64, slice<uint64_t>, update_slice<uint64_t>);
  add(128, slice<Pair>, update_slice<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
