// A call of scaled_dot_product_attention, of its form with_logsumexp or of its gradient, as engines see it:
// operands (batch, heads, rows, columns).
#pragma once
#include <optional>

#include "dovetail/backend.hpp"
#include "kernels/common/flash.hpp"

namespace gpu::attention {
// Each engine adds its row for an op and a type, if it serves that. The best comes first.
enum class Op { plain, with_logsumexp };

void add_cudnn(dvt::KernelTable&, Op, DLDataType);  // on Hopper and newer
void add_flash(dvt::KernelTable&, Op, DLDataType);  // the kernels of FlashAttention
void add_plain(dvt::KernelTable&, Op, DLDataType);  // one that takes all
void add_varlen(dvt::KernelTable&, DLDataType);     // of packed sequences, by the kernels of FlashAttention
void add_grad(dvt::KernelTable&, DLDataType);       // of the gradient, by the kernels of FlashAttention

enum Operand { q, k, v, mask, dropout_key };  // inputs by number; the gradient has others behind v

struct Call {
  explicit Call(const dvt_call*, int mask = Operand::mask);  // dropout_key is the input behind it

  const DLTensor *q, *k, *v, *mask, *dropout_key, *out, *lse;  // mask, dropout_key, lse: or nullptr
  bool causal;
  double scale, dropout_p;
  int64_t batches, heads, key_heads, queries, keys, size, value_size;

  int64_t heads_per_key() const { return key_heads ? heads / key_heads : 1; }
  void* lse_data() const { return lse ? dvt::data<void>(lse) : nullptr; }
  Dropout dropout() const;
};

// In elements; 0 along axes of one element.
struct Strides {
  int64_t batch, head, row, column;
};
// Nothing where the axes before the heads are not one in memory. They are q's: t may have fewer.
std::optional<Strides> strides_of(const DLTensor* t, const Call&);

// A row of the table for one of the two ops, without its query; operands are aligned to 1 << align_log2 bytes.
dvt::Row row_of(Op, DLDataType, dvt::Row::Run, unsigned align_log2 = 0);

// Engines that read 16 bytes at once want rows that begin at multiples of them: the operands q, k and v whose do
// not, bit by bit.
inline constexpr unsigned align_16 = 4;
inline constexpr char unaligned_reason[] = "rows are not dense, or no multiples of 16 bytes apart";
bool is_aligned(const DLTensor*, const Call&);
uint64_t unaligned(const Call&);

// The kernels' number for the mask's type; empty if they do not support it.
std::optional<MaskKind> mask_kind(const DLTensor* mask);

// For queries: a call that would be served with some operands copied to be row-major, bit by bit, or not at all.
dvt_status refuse(dvt_answer*, const char* reason, uint64_t need_compact = 0);
dvt_status accept(dvt_answer*, uint64_t workspace = 0);

// ---- FlashAttention's kernels on mma.sync ------------------------------------------------

// For queries: why they cannot serve heads of these sizes, so many rows in so many matrices, or the call's mask;
// nullptr if they can.
const char* flash_refusal(int64_t size, int64_t value_size);
const char* flash_refusal(const FlashShape&, int64_t queries, int64_t keys, int64_t sequences, int64_t matrices);
const char* flash_mask_refusal(const Call&);

FlashShape shape_of(int64_t size, int64_t value_size);
// The kernels' parameters for a call that no query refused, and the strides of one of its aligned operands.
Flash describe(const Call&);
FlashStrides flash_strides(const DLTensor*, const Call&);
// Whether only the general kernels serve the call: it has a mask, dropout, or a scale that may reverse the order of
// scores.
bool is_general(const Flash&);
// Launches them over so many heads of all batches.
dvt_status launch_flash(dvt_device*, const dvt_call*, DLDataType, Flash, int64_t matrices);
}  // namespace gpu::attention
