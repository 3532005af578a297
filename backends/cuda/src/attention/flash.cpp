#include <array>
#include <cmath>
#include <string>

#include "attention/call.hpp"
#include "attention/engines.hpp"
#include "dtypes.hpp"
#include "launch.hpp"

namespace gpu::attention {
namespace {
struct Kernels {
  KernelId plain, general;  // general: with a mask, or a scale that may turn the order of scores
};
using KernelsBySize = std::array<Kernels, std::size(flash_shapes)>;
constinit std::array<KernelsBySize, type_count> kernels{};

constexpr uint32_t chunk = 8;  // elements that are read at once: 16 bytes

bool is_aligned(const Strides& s, int64_t columns) {
  return (columns <= 1 || s.column == 1) && s.batch % chunk == 0 && s.head % chunk == 0 && s.row % chunk == 0;
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const Call call(c);
  const int64_t widest = std::max(call.size, call.value_size);
  if (widest > most_flash_size || call.size % chunk || call.value_size % chunk)
    return refuse(answer, "head sizes are not multiples of 8 up to 256");
  const FlashShape shape = flash_shape(int(widest));
  const int64_t blocks = (call.queries + shape.queries() - 1) / shape.queries();
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  if (call.queries > most - shape.queries() || call.keys > most - call.queries - shape.keys ||
      blocks * call.heads > most / std::max<int64_t>(call.batches, 1))
    return refuse(answer, "there are more queries, keys or heads than 31 bits count");
  if (!mask_kind(call.mask)) return refuse(answer, "the mask is neither bool, float16, bfloat16 nor float32");
  if (call.mask && !strides_of(call.mask, call)) return refuse(answer, "the mask's axes of batches are not one");

  uint64_t need_compact = 0;
  const auto look = [&](Operand i, const DLTensor* t, int64_t columns) {
    const auto s = strides_of(t, call);
    if (!s || !is_aligned(*s, columns)) need_compact |= uint64_t{1} << i;
  };
  look(Operand::q, call.q, call.size), look(Operand::k, call.k, call.size);
  look(Operand::v, call.v, call.value_size);
  if (need_compact) return refuse(answer, "rows are not dense, or no multiples of 16 bytes apart", need_compact);
  return accept(answer);
}

FlashStrides flash_strides(const DLTensor* t, const Call& call) {
  const Strides s = *strides_of(t, call);
  return {s.batch, s.head, s.row};
}

Flash describe(const Call& call, const FlashShape& shape) {
  Flash p{};
  p.q = dvt::data<void>(call.q), p.k = dvt::data<void>(call.k), p.v = dvt::data<void>(call.v);
  p.out = dvt::data<void>(call.out);
  p.queries = uint32_t(call.queries), p.keys = uint32_t(call.keys);
  p.heads = uint32_t(call.heads), p.heads_per_key = uint32_t(call.heads_per_key());
  p.size = uint32_t(call.size), p.value_size = uint32_t(call.value_size);
  p.blocks = uint32_t((call.queries + shape.queries() - 1) / shape.queries());
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

dvt_status run(dvt_device* d, const dvt_call* c) {
  const Call call(c);
  const int widest = int(std::max(call.size, call.value_size));
  const FlashShape shape = flash_shape(widest);
  const Flash p = describe(call, shape);
  const bool general = call.mask || !(p.scale > 0 && std::isfinite(p.scale));
  const Kernels& of_size = kernels[type_index(call.q->dtype)][size_t(flash_shape_number(widest))];
  const Grid grid{{uint32_t(p.blocks * call.heads * call.batches)},
                  {uint32_t(shape.threads())},
                  uint32_t(shape.shared_bytes())};
  return launch(d, c, general ? of_size.general : of_size.plain, grid, p);
}
}  // namespace

void add_flash(dvt::KernelTable& table, DLDataType type) {
  if (type.bits != 16) return;
  for (size_t i = 0; i < std::size(flash_shapes); ++i) {
    const std::string end = std::string(type_name(type)) + "_" + std::to_string(flash_shapes[i].size);
    kernels[type_index(type)][i] = {find_kernel("flash_" + end), find_kernel("flash_general_" + end)};
  }
  constexpr unsigned aligned = 4;  // to 16 bytes
  table.add(dvt::Row("dvt.scaled_dot_product_attention", run)
                .engine("flash")
                .in(type, DVT_O_STRIDED, aligned)
                .in(type, DVT_O_STRIDED, aligned)
                .in(type, DVT_O_STRIDED, aligned)
                .in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL)
                .out(type, 0, aligned)
                .query(query)
                .deterministic());
}
}  // namespace gpu::attention
