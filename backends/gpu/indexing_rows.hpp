// The rows of ops that read or write slices of a tensor by index: take, embedding, take_along_axis, scatter.
#pragma once
#include <cstring>
#include <initializer_list>

#include "gpu/elementwise.hpp"
#include "gpu/kernels/shared/slices.hpp"
#include "gpu/plan.hpp"
#include "kernels/common/layout.hpp"

namespace gpu {
// The grid of a scatter. A backend defines it.
Grid grid_of_scatter(const Slices&);

// The slices of x, which all of `indices` index along an axis.
inline Slices plan_slices(const dvt_call* c, const DLTensor* x, const DLTensor* indices, int64_t along,
                          uint64_t elements) {
  Slices how{};
  how.n = elements, how.count = divide_by(uint64_t(dvt::size(indices)));
  how.axis = along, how.size = x->shape[along], how.call = c->correlation_id;
  uint64_t inner = 1;
  for (int64_t axis = how.axis + 1; axis < x->ndim; ++axis) inner *= uint64_t(x->shape[axis]);
  how.inner = divide_by(inner);
  return how;
}
// The same for a call of x, indices and axis.
inline Slices plan_slices(const dvt_call* c, uint64_t elements) {
  return plan_slices(c, c->in[0], c->in[1], dvt::Attrs(c).i64(0), elements);
}

// Treats contiguous slices as slices of wider elements: the widest of up to 16 bytes that their size and the
// addresses of all operands allow. `bytes` is the size of an element in memory; returns that of the wider ones.
inline uint32_t widen(Slices& how, uint32_t bytes, std::initializer_list<const void*> operands) {
  constexpr uint64_t widest = 16;
  uint64_t fits = value_of(how.inner) * bytes | widest;
  for (const void* p : operands) fits |= reinterpret_cast<uintptr_t>(p);
  const auto wide = std::max(uint32_t(fits & (~fits + 1)), bytes);  // the lowest bit that any of them has
  if (wide == bytes) return bytes;
  how.n = how.n * bytes / wide, how.inner = divide_by(value_of(how.inner) * bytes / wide);
  return wide;
}

// The kernel of an op that copies elements of so many bytes.
template <OpName op>
KernelId kernel_of_size(uint32_t bytes) {
  return kernels_by_type<op, KernelId>[size_index(dvt::any(8 * bytes))];
}
template <OpName op>
void find_kernels_of_sizes() {
  for (const DLDataType type : sizes) kernels_for<op, KernelId>(type) = find_kernel(op.stem(), type);
}

// ---- take, embedding --------------------------------------------------------------------

inline dvt_status take_slices(dvt_device* d, const dvt_call* c, const DLTensor* from, const DLTensor* at,
                              int64_t axis) {
  const void *x = dvt::data<void>(from), *indices = dvt::data<void>(at);
  void* const out = dvt::data<void>(c->out[0]);
  Slices how = plan_slices(c, from, at, axis, uint64_t(dvt::size(c->out[0])));
  const uint32_t bytes = widen(how, bytes_of(from->dtype), {x, out});
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  const uint64_t inner = value_of(how.inner);
  return launch(d, c, kernel_of_size<"dvt.take">(bytes), grid_of_rows(how.n / inner, inner), x, indices, out, how,
                fault);
}
inline dvt_status run_take(dvt_device* d, const dvt_call* c) {
  return take_slices(d, c, c->in[0], c->in[1], dvt::Attrs(c).i64(0));
}
inline dvt_status run_embedding(dvt_device* d, const dvt_call* c) {
  return take_slices(d, c, c->in[1], c->in[0], 0);
}
inline void add_take(dvt::KernelTable& table) {
  find_kernels_of_sizes<"dvt.take">();
  for (const DLDataType type : sizes) {
    table.add(dvt::Row("dvt.take", run_take).in(type).in(dvt::i64).out(type).deterministic());
    table.add(dvt::Row("dvt.embedding", run_embedding).in(dvt::i64).in(type).out(type).deterministic());
  }
}

// ---- take_along_axis --------------------------------------------------------------------

inline dvt_status run_take_along_axis(dvt_device* d, const dvt_call* c) {
  const DLTensor *x = c->in[0], *indices = c->in[1], *out = c->out[0];
  const Slices how = plan_slices(c, uint64_t(dvt::size(out)));
  int64_t of_x[DVT_MAX_NDIM], of_indices[DVT_MAX_NDIM];
  for (int i = 0; i < out->ndim; ++i) {
    of_x[i] = i == how.axis || x->shape[i] == 1 ? 0 : x->strides[i];
    of_indices[i] = indices->shape[i] == 1 ? 0 : indices->strides[i];
  }
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernel_of_size<"dvt.take_along_axis">(bytes_of(x->dtype)), grid_of(how.n), dvt::data<void>(x),
                dvt::data<void>(indices), dvt::data<void>(out), how, x->strides[how.axis],
                plan_iteration(out->ndim, out->shape, of_x, of_indices), fault);
}
inline void add_take_along_axis(dvt::KernelTable& table) {
  find_kernels_of_sizes<"dvt.take_along_axis">();
  for (const DLDataType type : sizes) {
    dvt::Row row("dvt.take_along_axis", run_take_along_axis);
    table.add(row.in(type, DVT_O_STRIDED).in(dvt::i64, DVT_O_STRIDED).out(type).deterministic());
  }
}

// ---- scatter ----------------------------------------------------------------------------

inline dvt_status copy_to_output(dvt_device* d, const dvt_call* c) {
  if (dvt::data<void>(c->in[0]) == dvt::data<void>(c->out[0])) return DVT_OK;
  dvt_call copy = *c;
  copy.n_in = 1;
  return run_elementwise(d, &copy,
                         kernels_by_type<"dvt.scatter", ElementwiseKernels>[size_index(c->out[0]->dtype)]);
}

// The updates over the shape of x with as many slices as there are indices; missing and single axes broadcast.
inline IterationSpace space_of_updates(const DLTensor* x, int64_t axis, int64_t count, const DLTensor* updates) {
  int64_t shape[DVT_MAX_NDIM], stride[DVT_MAX_NDIM];
  const int missing = x->ndim - updates->ndim;
  for (int i = 0; i < x->ndim; ++i) {
    shape[i] = i == axis ? count : x->shape[i];
    stride[i] = i < missing || updates->shape[i - missing] == 1 ? 0 : updates->strides[i - missing];
  }
  return plan_iteration(x->ndim, shape, stride, stride);
}

inline dvt_status run_scatter(dvt_device* d, const dvt_call* c) {
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
  IterationSpace space = space_of_updates(x, axis, count, updates);
  uint32_t bytes = bytes_of(x->dtype);
  const bool dense = space.axes == 1 && space.axis[0].stride[0] == 1;  // updates as they would be stored
  if (from && dense) {
    bytes = widen(how, bytes, {from, out});
    space.axis[0].size = divide_by(how.n);
  }
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernel_of_size<"dvt.scatter">(bytes), grid_of_scatter(how), from, dvt::data<void>(indices),
                out, how, space, value, fault);
}
inline void add_scatter(dvt::KernelTable& table) {
  find_kernels_of_sizes<"dvt.scatter">();
  for (const DLDataType type : sizes) {
    kernels_for<"dvt.scatter", ElementwiseKernels>(type) = find_elementwise("copy", type);
    dvt::Row row("dvt.scatter", run_scatter);  // not deterministic where indices repeat
    table.add(row.in(type, DVT_O_ALIAS).in(dvt::i64).in(type, any_operand).out(type));
  }
}
}  // namespace gpu
