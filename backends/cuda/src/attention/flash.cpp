#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "attention/call.hpp"
#include "device/errors.hpp"
#include "gpu/dtypes.hpp"
#include "launch.hpp"

namespace gpu::attention {
namespace {
struct Kernels {
  KernelId plain, general;
};
using KernelsBySize = std::array<Kernels, std::size(flash_shapes)>;
constinit std::array<KernelsBySize, type_count> kernels{};
constinit std::array<std::array<KernelId, 2>, type_count> hopper_kernels{};  // of 64 and 128 elements

constexpr uint32_t chunk = 8;  // elements that are read at once: 16 bytes

// The number of query blocks of a head; for packed sequences, whose lengths are on the device, an upper bound.
int64_t blocks_of(const FlashShape& shape, int64_t queries, int64_t sequences) {
  return sequences < 0 ? (queries + shape.queries() - 1) / shape.queries()
                       : int64_t{packed_blocks(uint32_t(queries), uint32_t(sequences), uint32_t(shape.queries()))};
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const Call call(c);
  if (const char* reason = flash_refusal(call.size, call.value_size)) return refuse(answer, reason);
  const FlashShape shape = shape_of(call.size, call.value_size);
  if (const char* reason = flash_refusal(shape, call.queries, call.keys, -1, call.heads * call.batches))
    return refuse(answer, reason);
  if (const char* reason = flash_mask_refusal(call)) return refuse(answer, reason);
  if (const uint64_t operands = unaligned(call)) return refuse(answer, unaligned_reason, operands);
  return accept(answer);
}

bool has_hopper_kernel(dvt_device* d, const Call& call, const Flash& p) {
  const auto varies = [](const FlashStrides& s, int64_t rows) { return rows == 1 || s.row; };  // TMA wants it
  return d->capability == 90 && std::max(p.size, p.value_size) <= most_hopper_size && p.size && p.value_size &&
         p.keys && varies(p.q_strides, call.queries) && varies(p.k_strides, call.keys) &&
         varies(p.v_strides, call.keys);
}

// An operand as tiles of so many rows of 64 columns. Axes of one element, or that are broadcast, have size 1.
TensorMap map_of(const DLTensor* t, const FlashStrides& s, int64_t heads, int64_t batches, uint32_t rows) {
  const uint64_t columns = uint64_t(t->shape[t->ndim - 1]), all_rows = uint64_t(t->shape[t->ndim - 2]);
  const auto size = [](int64_t n, int64_t stride) { return stride ? uint64_t(n) : 1; };
  const auto bytes = [&](int64_t stride) { return uint64_t(stride ? stride : int64_t(columns)) * 2; };
  const cuuint64_t sizes[] = {columns, all_rows, size(heads, s.head), size(batches, s.batch)};
  const cuuint64_t strides[] = {bytes(s.row), bytes(s.head), bytes(s.batch)};
  const cuuint32_t box[] = {64, rows, 1, 1}, steps[] = {1, 1, 1, 1};
  const bool is_bf16 = t->dtype.code == DVT_BFLOAT;
  CUtensorMap map;
  GPU_CALL(cuTensorMapEncodeTiled(
      &map, is_bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, dvt::data<void>(t),
      sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return std::bit_cast<TensorMap>(map);
}

dvt_status run_hopper(dvt_device* d, const dvt_call* c, const Call& call, Flash p) {
  const bool wide = std::max(p.size, p.value_size) > 64;
  const FlashHopperShape shape{wide ? 128 : 64};
  p.blocks = uint32_t((call.queries + shape.queries - 1) / shape.queries);
  return guarded(d, [&] {
    const FlashMaps maps{map_of(call.q, p.q_strides, call.heads, call.batches, shape.queries),
                         map_of(call.k, p.k_strides, call.key_heads, call.batches, shape.keys),
                         map_of(call.v, p.v_strides, call.key_heads, call.batches, shape.keys), p};
    const Grid grid{{uint32_t(p.blocks * call.heads * call.batches)},
                    {uint32_t(shape.threads)},
                    uint32_t(shape.shared_bytes())};
    return launch(d, c, hopper_kernels[type_index(call.q->dtype)][wide], grid, maps);
  });
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const Call call(c);
  const Flash p = describe(call);
  if (!is_general(p) && has_hopper_kernel(d, call, p)) return run_hopper(d, c, call, p);
  return launch_flash(d, c, call.q->dtype, p, call.heads * call.batches);
}
}  // namespace

const char* flash_refusal(int64_t size, int64_t value_size) {
  const bool fits = std::max(size, value_size) <= most_flash_size && size % chunk == 0 && value_size % chunk == 0;
  return fits ? nullptr : "head sizes are not multiples of 8 up to 256";
}

const char* flash_refusal(const FlashShape& shape, int64_t queries, int64_t keys, int64_t sequences,
                          int64_t matrices) {
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  const bool fits = queries <= most - shape.queries() && keys <= most - queries - shape.keys && sequences < most &&
                    blocks_of(shape, queries, sequences) <= most / std::max<int64_t>(matrices, 1);
  return fits ? nullptr : "there are more queries, keys or heads than 31 bits count";
}

const char* flash_mask_refusal(const Call& call) {
  const auto kind = mask_kind(call.mask);
  if (!kind || *kind == mask_f64) return "the mask is neither bool, float16, bfloat16 nor float32";
  return call.mask && !strides_of(call.mask, call) ? "the mask's axes of batches are not one" : nullptr;
}

FlashShape shape_of(int64_t size, int64_t value_size) { return flash_shape(int(std::max(size, value_size))); }

FlashStrides flash_strides(const DLTensor* t, const Call& call) {
  const Strides s = *strides_of(t, call);
  return {s.batch, s.head, s.row};
}

Flash describe(const Call& call) {
  Flash p{};
  p.q = dvt::data<void>(call.q), p.k = dvt::data<void>(call.k), p.v = dvt::data<void>(call.v);
  p.out = dvt::data<void>(call.out);
  p.lse = static_cast<float*>(call.lse_data()), p.dropout = call.dropout();
  p.queries = uint32_t(call.queries), p.keys = uint32_t(call.keys);
  p.heads = uint32_t(call.heads), p.heads_per_key = uint32_t(call.heads_per_key());
  p.size = uint32_t(call.size), p.value_size = uint32_t(call.value_size);
  p.causal = call.causal ? causal_top_left : causal_none, p.scale = float(call.scale);
  p.q_strides = flash_strides(call.q, call), p.k_strides = flash_strides(call.k, call);
  p.v_strides = flash_strides(call.v, call), p.out_strides = flash_strides(call.out, call);
  p.mask_kind = *mask_kind(call.mask);
  if (call.mask) {
    p.mask = dvt::data<void>(call.mask), p.mask_strides = flash_strides(call.mask, call);
    p.mask_column = strides_of(call.mask, call)->column;
  }
  return p;
}

bool is_general(const Flash& p) { return p.mask || p.dropout.key || !(p.scale > 0 && std::isfinite(p.scale)); }

dvt_status launch_flash(dvt_device* d, const dvt_call* c, DLDataType type, Flash p, int64_t matrices) {
  const int widest = int(std::max(p.size, p.value_size));
  const FlashShape shape = flash_shape(widest);
  const Kernels& of_size = kernels[type_index(type)][size_t(flash_shape_number(widest))];
  p.blocks = uint32_t(blocks_of(shape, p.queries, p.q_begin ? int64_t{p.sequences} : -1));
  const Grid grid{{uint32_t(p.blocks * matrices)}, {uint32_t(shape.threads())}, uint32_t(shape.shared_bytes())};
  return launch(d, c, is_general(p) ? of_size.general : of_size.plain, grid, p);
}

void add_flash(dvt::KernelTable& table, Op op, DLDataType type) {
  if (type.bits != 16) return;
  for (size_t i = 0; i < std::size(flash_shapes); ++i) {
    const std::string end = std::string(type_name(type)) + "_" + std::to_string(flash_shapes[i].size);
    kernels[type_index(type)][i] = {find_kernel("flash_" + end), find_kernel("flash_general_" + end)};
  }
  const std::string hopper = std::string("flash_hopper_") + type_name(type);
  hopper_kernels[type_index(type)] = {find_kernel(hopper + "_64"), find_kernel(hopper + "_128")};
  table.add(row_of(op, type, run, align_16).engine("flash").query(query).deterministic());
}
}  // namespace gpu::attention
