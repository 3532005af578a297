// A call of scaled_dot_product_attention as its engines see it: operands (batch, heads, rows, columns).
#pragma once
#include <optional>

#include "dovetail/backend.hpp"
#include "kernels/common/flash.hpp"

namespace gpu::attention {
enum Operand { q, k, v, mask };  // inputs by number

struct Call {
  explicit Call(const dvt_call*);

  const DLTensor *q, *k, *v, *mask, *out;  // mask: or nullptr
  bool causal;
  double scale;
  int64_t batches, heads, key_heads, queries, keys, size, value_size;

  int64_t heads_per_key() const { return key_heads ? heads / key_heads : 1; }
};

// In elements; 0 along axes of one element.
struct Strides {
  int64_t batch, head, row, column;
};
// Nothing where the axes before the heads are not one in memory. They are q's: t may have fewer.
std::optional<Strides> strides_of(const DLTensor* t, const Call&);

// Engines that read 16 bytes at once want rows that begin at multiples of them: the operands q, k and v whose do
// not, bit by bit; and a row of the table without its query.
inline constexpr char unaligned_reason[] = "rows are not dense, or no multiples of 16 bytes apart";
uint64_t unaligned(const Call&);
dvt::Row row_of_aligned(DLDataType, dvt::Row::Run);

// The mask's type as kernels know it; nothing where they do not.
std::optional<MaskKind> mask_kind(const DLTensor* mask);

// For queries: a call that would be served with some operands copied to be row-major, bit by bit, or not at all.
dvt_status refuse(dvt_answer*, const char* reason, uint64_t need_compact = 0);
dvt_status accept(dvt_answer*, uint64_t workspace = 0);
}  // namespace gpu::attention
