// Reductions and cumulative ops: their kernels, how rows are cut into parts, and the launches.
#include "gpu/reduction_rows.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
// The bits to flip so that a type's greatest number, or its least, becomes the greatest of the type without_sign.
Variant in_order(DLDataType type, bool least) {
  const uint64_t all = ~uint64_t{0} >> (64 - type.bits), sign = uint64_t{1} << (type.bits - 1);
  if (is_float(type)) return {.flip = least ? sign : 0};
  return {.flip = (least ? all : 0) ^ (type.code == DVT_INT ? sign : 0)};
}
}  // namespace

ReductionKernels find_any(DLDataType type, bool every) {
  const uint64_t sign = is_float(type) ? uint64_t{1} << (type.bits - 1) : 0;
  ReductionKernels k = find_reduction("any", unsigned_of(type), 1);
  k.variant = {.flip = every, .counts = ~sign};
  return k;
}
ReductionKernels find_max(DLDataType type, bool least) {
  ReductionKernels k = find_reduction("max", without_sign(type), computed_bytes(type));
  k.variant = in_order(type, least);
  return k;
}
ReductionKernels find_argmax(DLDataType type, bool least) {
  constexpr uint32_t value_bytes = 16;  // a value and its index
  ReductionKernels k = find_reduction("argmax", without_sign(type), value_bytes);
  k.variant = in_order(type, least);
  return k;
}
ReductionKernels find_sum(DLDataType type, bool mean) {
  ReductionKernels k = find_reduction("sum", without_sign(type), total_bytes(type, true));
  k.variant = {.mean = mean};
  return k;
}
void cut_long_rows(ReductionPlan& how, bool columns) {
  constexpr uint64_t enough_blocks = 1024, most_parts = 256;
  const uint64_t blocks = columns ? blocks_of_columns(how) : how.count, shortest = columns ? 128 : 4096;
  const uint64_t wanted =
      std::min({how.size / shortest, enough_blocks / std::max<uint64_t>(blocks, 1), most_parts});
  if (wanted > 1) cut(how, wanted);
}
Grid grid_of_reduction(ReductionPlan& how, bool columns, uint32_t bytes) {
  const bool contiguous = how.axis[how.kept + how.along - 1].stride[0] == 1;
  return columns ? grid_of_columns(how) : grid_of_reduction_rows(how, contiguous ? pack_bytes / bytes : 1);
}
Grid grid_of_parts(const ReductionPlan& how) {
  const uint64_t rows_of_block = block_size / 32;  // by a warp each
  return grid_of_blocks((how.count + rows_of_block - 1) / rows_of_block, block_size);
}

// ---- cumulative_sum, cumulative_prod -----------------------------------------------------

namespace {
// The rows as reductions see them, whose results are contiguous.
ReductionPlan numbered(ReductionPlan how) {
  int64_t step = 1;
  for (uint32_t a = how.kept; a-- > 0; step *= int64_t(how.axis[a].size.value)) how.axis[a].stride[1] = step;
  return how;
}
}  // namespace

KernelId find_totals(std::string_view op, DLDataType type) {
  return find_kernel(std::string(op.substr(op.find('_') + 1)) + "_rows", type);  // of sum, prod
}
// A sum of floats grows in twice the bits (kernels/common/sum.cuh).
uint32_t total_bytes(DLDataType type, bool is_sum) {
  return is_sum && is_float(type) && type.bits > 16 ? 2 * bytes_of(type) : computed_bytes(type);
}

PlannedReduction plan_scan(const dvt_call* c) {
  constexpr uint64_t enough_columns = 1 << 13, shortest = 8192, enough_blocks = 1024, most_parts = 256;
  const DLTensor *x = c->in[0], *out = c->out[0];
  PlannedReduction p{plan_rows(x, 1u << dvt::Attrs(c).i64(0), out->strides), false};
  // A thread alone for each row: only where there are many, or they are short.
  if (p.how.count >= enough_columns || p.how.size < shortest) p.columns = prefer_columns(p.how);
  if (p.columns) return p;
  const uint64_t parts =
      std::min({p.how.size / shortest, enough_blocks / std::max<uint64_t>(p.how.count, 1), most_parts});
  if (parts > 1) cut(p.how, parts);
  return p;
}

Grid grid_of_scan(ReductionPlan& how, bool columns, uint32_t bytes) {
  return columns ? grid_of_columns(how, 1) : grid_of_reduction_rows(how, pack_bytes / bytes);
}
dvt_status total_parts(dvt_device* d, const dvt_call* c, const ScanKernels& k, const Grid& grid, void* partial,
                       const ReductionPlan& how) {
  const void* const x = dvt::data<void>(c->in[0]);
  void* const nowhere = nullptr;
  if (dvt_status s = launch(d, c, k.totals, grid, x, partial, nowhere, numbered(how), Variant{})) return s;
  return launch(d, c, k.parts, grid_of(how.count * 32), partial, how);
}
}  // namespace gpu
