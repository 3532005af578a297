#include <array>
#include <string>

#include "dtypes.hpp"
#include "held.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId held, lines;
};
constinit std::array<Kernels, type_count> layer_norms{}, rms_norms{};

const void* optional(const dvt_call* c, uint32_t i) {
  return dvt::has_in(c, i) ? dvt::data<void>(c->in[i]) : nullptr;
}

template <class Float>
dvt_status run_with(dvt_device* d, const dvt_call* c, bool centred) {
  const DLTensor* x = c->in[0];
  const uint32_t bytes = bytes_of(x->dtype);
  uint64_t n = 1;  // elements of a row: of the last axes, as many as are named
  for (int i = x->ndim - int(dvt::Attrs(c).i64s(0).count); i < x->ndim; ++i) n *= uint64_t(x->shape[i]);
  Lines how = plan_rows(uint64_t(dvt::size(x)) / n, n);
  const auto eps = Float(dvt::Attrs(c).f64(1));
  const void *from = dvt::data<void>(x), *weight = optional(c, 1), *bias = centred ? optional(c, 2) : nullptr;
  void* const out = dvt::data<void>(c->out[0]);
  const Kernels& k = (centred ? layer_norms : rms_norms)[type_index(x->dtype)];
  if (!is_holdable(how, bytes) || !is_packed(how, bytes, {from, weight, bias, out})) {
    const Grid grid = grid_of_lines(how, pack_bytes / bytes, most_holders);
    return centred ? launch(d, c, k.lines, grid, from, weight, bias, out, how, eps)
                   : launch(d, c, k.lines, grid, from, weight, out, how, eps);
  }
  const Grid grid = grid_of_holders(how, bytes);
  return centred ? launch(d, c, k.held, grid, from, weight, bias, out, how, eps)
                 : launch(d, c, k.held, grid, from, weight, out, how, eps);
}
template <bool centred>
dvt_status run(dvt_device* d, const dvt_call* c) {
  return dvt::same(c->in[0]->dtype, dvt::f64) ? run_with<double>(d, c, centred) : run_with<float>(d, c, centred);
}

Kernels find(const std::string& name, DLDataType type) {
  return {find_kernel(name + "_held_" + type_name(type)), find_kernel(name + "_lines_" + type_name(type))};
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    layer_norms[type_index(type)] = find("layer_norm", type);
    rms_norms[type_index(type)] = find("rms_norm", type);
    dvt::Row layer_norm("dvt.layer_norm", run<true>), rms_norm("dvt.rms_norm", run<false>);
    layer_norm.in(type).in(type, DVT_O_OPTIONAL).in(type, DVT_O_OPTIONAL).out(type).deterministic();
    rms_norm.in(type).in(type, DVT_O_OPTIONAL).out(type).deterministic();
    table.add(layer_norm);
    table.add(rms_norm);
  }
}
}  // namespace gpu
