// The rows of softmax, log_softmax, layer_norm and rms_norm.
#pragma once
#include "gpu/by_type.hpp"

namespace gpu {
inline const void* optional_data(const dvt_call* c, uint32_t i) {
  return dvt::has_in(c, i) ? dvt::data<void>(c->in[i]) : nullptr;
}

template <class Kernels, dvt_status (*run)(dvt_device*, const dvt_call*, const Kernels&)>
void add_softmax(dvt::KernelTable& table, Kernels (*find)(std::string_view, DLDataType)) {
  const auto operands = [](dvt::Row& row, DLDataType type) { row.in(type, DVT_O_STRIDED).out(type); };
  add_by_type<"dvt.softmax", Kernels, run>(table, floats, find, operands);
  add_by_type<"dvt.log_softmax", Kernels, run>(table, floats, find, operands);
}

// The rows that the last axes of x form, which the norms of a call are taken of.
struct NormRows {
  uint64_t rows, size;

  explicit NormRows(const dvt_call* c) : size(1) {
    const DLTensor* x = c->in[0];
    for (int i = x->ndim - int(dvt::Attrs(c).i64s(0).count); i < x->ndim; ++i) size *= uint64_t(x->shape[i]);
    rows = uint64_t(dvt::size(x)) / size;
  }
};

// Norm::run<Float>(device, call, kernels, centred): layer_norm is centred, Float is the type of eps.
template <class Norm, bool centred, class Kernels>
dvt_status run_norm(dvt_device* d, const dvt_call* c, const Kernels& k) {
  return dvt::same(c->in[0]->dtype, dvt::f64) ? Norm::template run<double>(d, c, k, centred)
                                              : Norm::template run<float>(d, c, k, centred);
}
template <class Norm, class Kernels>
void add_norms(dvt::KernelTable& table, Kernels (*find)(std::string_view, DLDataType)) {
  add_by_type<"dvt.layer_norm", Kernels, run_norm<Norm, true, Kernels>>(
      table, floats, find, [](dvt::Row& row, DLDataType type) {
        row.in(type).in(type, DVT_O_OPTIONAL).in(type, DVT_O_OPTIONAL).out(type);
      });
  add_by_type<"dvt.rms_norm", Kernels, run_norm<Norm, false, Kernels>>(
      table, floats, find, [](dvt::Row& row, DLDataType type) { row.in(type).in(type, DVT_O_OPTIONAL).out(type); });
}
}  // namespace gpu
