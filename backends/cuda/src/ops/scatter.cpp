#include <array>
#include <cstring>
#include <string>

#include "elementwise.hpp"
#include "kernels/common/layout.hpp"
#include "slices.hpp"

namespace gpu {
namespace {
constinit KernelsByType copies{};
constinit std::array<KernelId, type_count> kernels{};

dvt_status copy_to_output(dvt_device* d, const dvt_call* c) {
  if (dvt::data<void>(c->in[0]) == dvt::data<void>(c->out[0])) return DVT_OK;
  dvt_call copy = *c;
  copy.n_in = 1;
  return run_elementwise(d, &copy, copies[size_index(c->out[0]->dtype)]);
}

// The updates over x's shape with as many slices as there are indices; missing and single axes broadcast.
Walk walk_updates(const DLTensor* x, int64_t axis, int64_t count, const DLTensor* updates) {
  int64_t shape[DVT_MAX_NDIM], stride[DVT_MAX_NDIM];
  const int missing = x->ndim - updates->ndim;
  for (int i = 0; i < x->ndim; ++i) {
    shape[i] = i == axis ? count : x->shape[i];
    stride[i] = i < missing || updates->shape[i - missing] == 1 ? 0 : updates->strides[i - missing];
  }
  return plan_walk(x->ndim, shape, stride, stride);
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
  if (dvt_status s = copy_to_output(d, c)) return s;
  const int64_t axis = dvt::Attrs(c).i64(0), count = indices->shape[0];
  Slices how = plan_slices(c, uint64_t(dvt::size(x)) / uint64_t(x->shape[axis]) * uint64_t(count));
  if (how.n == 0) return DVT_OK;
  const bool on_host = updates->ndim == 0 && updates->device.device_type == 1 /* kDLCPU */;
  Scalar value{};
  if (on_host) std::memcpy(&value, dvt::data<char>(updates), dvt::bytes(updates));
  const void* const from = on_host ? nullptr : dvt::data<void>(updates);
  void* const out = dvt::data<void>(c->out[0]);
  Walk walk = walk_updates(x, axis, count, updates);
  uint32_t bytes = bytes_of(x->dtype);
  const bool dense = walk.axes == 1 && walk.axis[0].stride[0] == 1;  // updates as they would be stored
  if (from && dense) {
    bytes = widen(how, bytes, {from, out});
    walk.axis[0].size = divide_by(how.n);
  }
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernels[size_index(dvt::any(8 * bytes))],
                grid_of_rows(how.n / how.inner.value, how.inner.value), from, dvt::data<void>(indices), out, how,
                walk, value, fault);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    copies[type_index(type)] = find_elementwise(std::string("copy_") + type_name(type));
    kernels[type_index(type)] = find_kernel(std::string("scatter_") + type_name(type));
    dvt::Row row("dvt.scatter", run);  // not deterministic where indices repeat
    table.add(row.in(type, DVT_O_ALIAS).in(dvt::i64).in(type, any_operand).out(type));
  }
}
}  // namespace gpu
