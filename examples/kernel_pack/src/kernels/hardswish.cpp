// A faster engine than the op's decomposition: hardswish in float32, in one pass over memory instead of five.
#include "dovetail/backend.hpp"

namespace {
dvt_status hardswish(dvt_device*, const dvt_call* c) {
  const float* x = dvt::data<const float>(c->in[0]);
  float* out = dvt::data<float>(c->out[0]);
  dvt::parallel_for(uint64_t(dvt::size(c->out[0])), 16384, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) {  // comparisons with NaN are false: it goes through
      const float a = x[i] < -3 ? -3 : x[i], share = (a + 3) / 6;
      out[i] = a * (share > 1 ? 1 : share);
    }
  });
  return DVT_OK;
}
}  // namespace

void add_hardswish(dvt::KernelTable& table) {
  table.add(dvt::Row("dvt.hardswish", hardswish).engine("acme_fast").in(dvt::f32).out(dvt::f32).deterministic());
}
