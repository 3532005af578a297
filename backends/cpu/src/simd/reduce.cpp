#include "simd/reduce.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction {
namespace {
// Appends an axis, or merges it into the last one if the two are contiguous.
void append(Axis* axes, int& n, Axis a) {
  if (n) {
    Axis& last = axes[n - 1];
    if (last.stride == a.size * a.stride && last.out_stride == a.size * a.out_stride) {
      last = {last.size * a.size, a.stride, a.out_stride};
      return;
    }
  }
  axes[n++] = a;
}
}  // namespace

Plan plan(const DLTensor* x, uint32_t axes, int parts) {
  Plan p;
  Axis reduced[DVT_MAX_NDIM];
  int n_reduced = 0;
  int64_t out_stride[DVT_MAX_NDIM], step = parts;
  for (int i = x->ndim; i-- > 0;) {
    out_stride[i] = step;
    if (!(axes >> i & 1)) step *= x->shape[i];
  }
  for (int i = 0; i < x->ndim; ++i) {
    const Axis a{x->shape[i], x->strides[i] * parts, axes >> i & 1 ? 0 : out_stride[i]};
    if (axes >> i & 1) {
      p.terms *= a.size;
      if (a.size != 1) {
        int at = n_reduced++;
        for (; at && reduced[at - 1].stride < a.stride; --at) reduced[at] = reduced[at - 1];
        reduced[at] = a;
      }
    } else {
      p.results *= a.size;
      if (a.size != 1) append(p.kept, p.n_kept, a);
    }
  }
  if (parts > 1) p.results *= parts, append(p.kept, p.n_kept, {parts, 1, 1});
  for (int i = 0; i < n_reduced; ++i) append(p.reduced, p.n_reduced, reduced[i]);
  // The parts of adjacent elements are two rows, which a column of two would be slower than.
  if (p.n_reduced && p.reduced[p.n_reduced - 1].stride != parts)
    for (int i = 0; i < p.n_kept; ++i)
      if (p.kept[i].stride == 1) p.column = i;
  return p;
}

int64_t Plan::kept_offset(int64_t at, int64_t& out) const {
  int64_t offset = 0;
  out = 0;
  for (int i = n_kept; i-- > 0;) {
    if (i == column) continue;
    const int64_t k = i ? at % kept[i].size : at;
    offset += k * kept[i].stride, out += k * kept[i].out_stride;
    if (i) at /= kept[i].size;
  }
  return offset;
}

int64_t Plan::run_offset(int64_t r, int inner) const {
  int64_t offset = 0;
  for (int i = n_reduced - inner; i-- > 0;) {
    offset += (i ? r % reduced[i].size : r) * reduced[i].stride;
    if (i) r /= reduced[i].size;
  }
  return offset;
}

uint32_t axis_mask(const dvt_call* c, uint32_t attribute) {
  uint32_t mask = 0;
  for (int64_t axis : dvt::Attrs(c).i64s(attribute)) mask |= 1u << axis;
  return mask;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction
