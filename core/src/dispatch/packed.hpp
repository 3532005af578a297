// The operands of one call that its row gets in a layout of its own, too (dvt_call::packed).
#pragma once
#include "device/packs.hpp"
#include "dispatch/invocation.hpp"

namespace dovetail {
extern const bool packing;  // not where DOVETAIL_PACKING=0
inline bool packs_operands(const dvt_kernel& row) {
  return DVT_HAS(&row, dvt_kernel, pack_size) && DVT_HAS(&row, dvt_kernel, pack) && packing;
}

// What packed bytes depend on but for their layout, as text: <op>/<engine>/<operand>/<its view>. It means the same
// in every process. `own`: PackKey's own words.
std::string packed_call(std::span<const uint64_t> own);
// Of packed bytes in a file: a change within any eight bytes changes it. SHA-256 takes longer than to pack anew.
uint64_t checksum(std::span<const std::byte>);
// What of a value's packed bytes is worth a file.
std::vector<SavedPack> packs_to_save(Storage&);
struct SavedPackCounts {
  uint64_t taken = 0;               // of this process
  uint64_t stale = 0, damaged = 0;  // packed anew, as size or layout are others, or the bytes not those saved
};
SavedPackCounts saved_pack_counts();

class PackedOperands {
 public:
  PackedOperands(const Invocation& inv, const dvt_kernel& row) : inv_(inv), row_(row) {}
  ~PackedOperands();
  PackedOperands(const PackedOperands&) = delete;

  // What there is, and memory for what will be packed. Before the stream's lock is taken, as use() is.
  void find(const Tensor* const* operands, const dvt_call&, Stream&);
  // Packs what is to be packed, in the order of the call's stream, and gives it all to the call.
  void complete(dvt_call&);

 private:
  bool may_be_packed(const Tensor* const* operands, int i) const;
  void find(Storage&, uint32_t i, const dvt_call&, Stream&);
  bool take_saved(Storage&, const PackKey&, Packed& found, Stream&);

  const Invocation& inv_;
  const dvt_kernel& row_;
  uint64_t to_pack_ = 0;  // by operand
  Packed found_[kMaxInputs];
  Storage* values_[kMaxInputs];
  dvt_packed packed_[kMaxInputs];
};

// row.pack() as run_checked() has it.
dvt_status pack_checked(const dvt_kernel& row, dvt_device* device, const dvt_call& call, uint32_t operand,
                        const dvt_packed& to);
}  // namespace dovetail
