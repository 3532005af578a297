// copy: any strides to any strides, by byte size.
#include "simd/strided_copy.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <class T>
dvt_status copy(dvt_device*, const dvt_call* c) {
  copy_strided<T>(c->in[0], c->out[0]);
  return DVT_OK;
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run) {
    dvt::Row row("dvt.copy", run);
    row.in(dvt::any(bits), DVT_O_STRIDED | DVT_O_HOST_SCALAR).out(dvt::any(bits), DVT_O_STRIDED).deterministic();
    t.add(row.kernel());
  };
  add(8, copy<uint8_t>);
  add(16, copy<uint16_t>);
  add(32, copy<uint32_t>);
  add(64, copy<uint64_t>);
  add(128, copy<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
