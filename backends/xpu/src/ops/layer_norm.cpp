#include <array>
#include <string>

#include "dtypes.hpp"
#include "lines.hpp"

namespace xpu {
namespace {
constinit std::array<KernelId, type_count> layer_norms{}, rms_norms{};

const void* optional(const dvt_call* c, uint32_t i) {
  return dvt::has_in(c, i) ? dvt::data<void>(c->in[i]) : nullptr;
}

template <class Float>
dvt_status run_with(dvt_device* d, const dvt_call* c, bool centred) {
  const DLTensor* shape = c->in[0];
  uint64_t n = 1;  // elements of a row: of the last axes, as many as are named
  for (int i = shape->ndim - int(dvt::Attrs(c).i64s(0).count); i < shape->ndim; ++i) n *= uint64_t(shape->shape[i]);
  const uint64_t rows = uint64_t(dvt::size(shape)) / n;
  const Range range = range_of_groups(rows, n);
  const size_t type = type_index(c->in[0]->dtype);
  const auto eps = Float(dvt::Attrs(c).f64(1));
  const void *x = dvt::data<void>(c->in[0]), *weight = optional(c, 1);
  void* const out = dvt::data<void>(c->out[0]);
  return centred ? launch(d, c, layer_norms[type], range, x, weight, optional(c, 2), out, rows, n, eps)
                 : launch(d, c, rms_norms[type], range, x, weight, out, rows, n, eps);
}
template <bool centred>
dvt_status run(dvt_device* d, const dvt_call* c) {
  return dvt::same(c->in[0]->dtype, dvt::f64) ? run_with<double>(d, c, centred) : run_with<float>(d, c, centred);
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    layer_norms[type_index(type)] = find_kernel(std::string("layer_norm_") + type_name(type));
    rms_norms[type_index(type)] = find_kernel(std::string("rms_norm_") + type_name(type));
    dvt::Row layer_norm("dvt.layer_norm", run<true>), rms_norm("dvt.rms_norm", run<false>);
    layer_norm.in(type).in(type, DVT_O_OPTIONAL).in(type, DVT_O_OPTIONAL).out(type).deterministic();
    rms_norm.in(type).in(type, DVT_O_OPTIONAL).out(type).deterministic();
    for (dvt::Row* row : {&layer_norm, &rms_norm}) {
      if (dvt::same(type, dvt::f64)) row->query(query_fp64);
      table.add(*row);
    }
  }
}
}  // namespace xpu
