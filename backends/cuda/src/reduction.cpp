// Reductions: their kernels, how lines are cut into parts, and the launches.
#include "gpu/reduction_rows.hpp"
#include "lines.hpp"

namespace gpu {
namespace {
ReductionKernels find(std::string_view op, DLDataType type, uint32_t value_bytes, const Variant& variant = {}) {
  const std::string name(op);
  return {find_kernel(name + "_lines", type), find_kernel(name + "_columns", type),
          find_kernel(name + "_parts", type), value_bytes, variant};
}

// What makes a type's greatest number, or its least, the greatest of the type without_sign.
Variant in_order(DLDataType type, bool least) {
  const uint64_t all = ~uint64_t{0} >> (64 - type.bits), sign = uint64_t{1} << (type.bits - 1);
  if (is_float(type)) return {.flip = least ? sign : 0};
  return {.flip = (least ? all : 0) ^ (type.code == DVT_INT ? sign : 0)};
}

// Few and long lines are cut into parts, so that there is work for a whole GPU.
void cut_long_lines(Lines& how, bool columns) {
  constexpr uint64_t enough_blocks = 1024, most_parts = 256;
  const uint64_t blocks = columns ? blocks_of_columns(how) : how.count, shortest = columns ? 128 : 4096;
  const uint64_t wanted =
      std::min({how.size / shortest, enough_blocks / std::max<uint64_t>(blocks, 1), most_parts});
  if (wanted > 1) cut(how, wanted);
}
}  // namespace

ReductionKernels find_any(DLDataType type, bool every) {
  const uint64_t sign = is_float(type) ? uint64_t{1} << (type.bits - 1) : 0;
  return find("any", unsigned_of(type), 1, {.flip = every, .counts = ~sign});
}
ReductionKernels find_max(DLDataType type, bool least) {
  return find("max", without_sign(type), computed_bytes(type), in_order(type, least));
}
ReductionKernels find_argmax(DLDataType type, bool least) {
  constexpr uint32_t value_bytes = 16;  // a value and its index
  return find("argmax", without_sign(type), value_bytes, in_order(type, least));
}
ReductionKernels find_sum(DLDataType type, bool mean) {
  return find("sum", without_sign(type), total_bytes(type, true), {.mean = mean});
}
ReductionKernels find_prod(DLDataType type) { return find("prod", without_sign(type), total_bytes(type, false)); }

LinesPlan plan_parts(const dvt_call* c) {
  LinesPlan p{plan_reduction(c), false};
  p.columns = prefer_columns(p.how);
  cut_long_lines(p.how, p.columns);
  return p;
}

dvt_status run_reduction(dvt_device* d, const dvt_call* c, const ReductionKernels& kernels) {
  auto [how, columns] = plan_parts(c);
  const bool contiguous = how.axis[how.kept + how.along - 1].stride[0] == 1;
  const Grid grid =
      columns ? grid_of_columns(how) : grid_of_lines(how, contiguous ? pack_bytes / bytes_of(c->in[0]->dtype) : 1);
  void* const partial = how.parts.value > 1 ? c->workspace : nullptr;
  void* const out = dvt::data<void>(c->out[0]);
  if (dvt_status s = launch(d, c, columns ? kernels.columns : kernels.lines, grid, dvt::data<void>(c->in[0]),
                            partial, out, how, kernels.variant))
    return s;
  if (how.parts.value == 1) return DVT_OK;
  const uint64_t lines_of_block = block_size / 32;  // by a warp each
  return launch(d, c, kernels.parts, grid_of_blocks((how.count + lines_of_block - 1) / lines_of_block, block_size),
                partial, out, how, kernels.variant);
}
}  // namespace gpu
