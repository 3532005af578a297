#include "dispatch/autocast.hpp"

#include <atomic>

#include "device/capturing.hpp"
#include "device/packs.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/plan.hpp"

namespace dovetail {
namespace {
bool has_kernel(const Op& op, const Device& device, DType dtype) {
  const auto found = support(op, device, dtype);
  return found && found->mode == Plan::kernel && !found->cast;
}

ParamKind kind_of(const Op& op, int operand) { return op.operand_kinds[op.variadic ? 0 : operand]; }

// What a cast depends on, in words.
class CastKey {
 public:
  CastKey(const Tensor& t, DType to) {
    static const char is_cast = 0;
    add(reinterpret_cast<uintptr_t>(&is_cast));
    add(uint64_t(to) << 48 | uint64_t(t.dtype) << 32 | uint32_t(t.rank()));
    add(uint64_t(static_cast<const char*>(t.view.data) - static_cast<const char*>(t.storage->data)));
    for (int axis = 0; axis < t.rank(); ++axis) add(uint64_t(t.size(axis))), add(uint64_t(t.view.strides[axis]));
  }
  PackKey key() const { return {{words_, n_}, n_}; }

 private:
  void add(uint64_t word) { words_[n_++] = word; }
  uint64_t words_[3 + 2 * DVT_MAX_NDIM];
  size_t n_ = 0;
};
}  // namespace

// Calls ask for it, and looking through the kernels takes microseconds: it is known until kernels change.
DType default_autocast_dtype(const Device& device) {
  static const Op& matmul = op("matmul");
  static std::atomic<uint64_t> known[kMaxDevices];  // the epoch of the plans and the dtype; 0: not known
  constexpr uint64_t dtypes = 256;
  const uint64_t epoch = plans_epoch() + 1, found = known[device.index].load(std::memory_order_relaxed);
  if (found / dtypes == epoch) return DType(found % dtypes);
  const bool lacks = !has_kernel(matmul, device, DType::bf16) && has_kernel(matmul, device, DType::f16);
  const DType made = lacks ? DType::f16 : DType::bf16;
  known[device.index].store(epoch * dtypes + uint64_t(made), std::memory_order_relaxed);
  return made;
}

DType lower_dtype(const Autocast* state, const Device& device) {
  while (state && state->device && state->device != &device) state = state->outer.get();
  if (!state || !state->enabled) return DType::none;
  return state->dtype == DType::none ? default_autocast_dtype(device) : state->dtype;
}

DType autocast_dtype(const Op& op, int i, DType given, DType lower) {
  const bool is_cast = given == DType::f32 || given == DType::f16 || given == DType::bf16;
  if (lower == DType::none || !is_cast || kind_of(op, i) != ParamKind::value) return given;
  if (op.spec.flags & op_autocast_lower) return lower;
  return op.spec.flags & op_autocast_float32 ? DType::f32 : given;
}

Tensor cast_and_keep(const Tensor& t, DType to, Device& device) {
  if (capturing) return cast(t, to, device);  // each replay casts the value of then
  if (!t.storage || !t.numel || !(is_pooled(*t.storage) || t.storage->immutable)) return cast(t, to, device);
  const CastKey words(t, to);
  Packed found;
  PackStep step = find_packed(*t.storage, words.key(), found);
  if (step == PackStep::ask) step = choose_packed(*t.storage, words.key(), t.numel * info(to).bytes(), 0, found);
  if (step != PackStep::take) {
    Tensor made = cast(t, to, device);
    if (step != PackStep::make) return made;
    found.bytes = made.storage;
    keep_packed(*t.storage, found);
    return made;
  }
  Tensor kept;
  kept.set_type(to, &device);
  kept.set_shape(t.shape());
  kept.own(found.bytes);
  return kept;
}
}  // namespace dovetail
