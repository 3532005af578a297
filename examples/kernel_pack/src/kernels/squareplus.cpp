// The kernel of the pack's own op, python/dovetail_acme_fast/ops.py: (x + sqrt(x^2 + b)) / 2.
#include <cmath>

#include "dovetail/backend.hpp"

namespace {
dvt_status squareplus(dvt_device*, const dvt_call* c) {
  const float* x = dvt::data<const float>(c->in[0]);
  float* out = dvt::data<float>(c->out[0]);
  const double b = dvt::Attrs(c).f64(0, 4);
  dvt::parallel_for(uint64_t(dvt::size(c->out[0])), 16384, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) {
      const double a = x[i];
      // If x is negative the sum cancels; b / (sqrt(x^2 + b) - x) is the same number and does not.
      const double root = std::sqrt(a * a + b);
      out[i] = float(a < 0 ? b / (root - a) / 2 : (a + root) / 2);
    }
  });
  return DVT_OK;
}
}  // namespace

void add_squareplus(dvt::KernelTable& table) {
  table.add(dvt::Row("acme_fast.squareplus", squareplus).in(dvt::f32).out(dvt::f32).deterministic());
}
