#include "dispatch/invocation.hpp"

#include <bit>

#include "device/timeline.hpp"
#include "dispatch/execute.hpp"
#include "rules/rules.hpp"

namespace dovetail {
void Invocation::fail(ErrorKind kind, const std::string& why) const {
  throw Error(kind, "[" + op.spec.name + "] " + why);
}

namespace {
[[noreturn]] void wrong_device(const Invocation& inv, const Tensor& t) {
  inv.fail("arrays on " + inv.device->name + " and " + t.device->name +
           ": expected one device; bring one over with .to_device()");
}

// A place per operand, none where it is not given, and one for the dtype attribute.
[[gnu::always_inline]] inline uint64_t key_of(const Invocation& inv) {
  constexpr int bits = std::bit_width(unsigned(DType::none));
  static_assert((kMaxInputs + 1) * bits <= 64);
  const Op& op = inv.op;
  uint64_t key = 0;
  if (op.variadic) [[unlikely]] {
    for (int i = 0; i + 1 < op.n_in && i < inv.n_in; ++i)
      key = key << bits | uint64_t(inv.in[i] ? inv.in[i]->dtype : DType::none);
    key = key << bits | uint64_t(rules::promoted(inference_of(inv)));
  } else {
    for (int i = 0; i < inv.n_in; ++i) key = key << bits | uint64_t(inv.in[i] ? inv.in[i]->dtype : DType::none);
  }
  if (op.keyed_by_attrs) key = key << bits | uint64_t(rules::given_dtype(op, inv.attrs));
  return key;
}
}  // namespace

uint64_t dtype_key(const Invocation& inv) { return key_of(inv); }

void Invocation::infer() {
  for (int i = 0; i < n_in; ++i) {
    const Tensor* t = in[i];
    if (!t || !t->device || t->device == device) [[likely]]
      continue;
    if (device) wrong_device(*this, *t);
    device = t->device;
  }
  if (!device) [[unlikely]]
    fail(ErrorKind::type, "expected at least one array: dovetail.asarray() makes one of a number");
  plan = &plan_for(op, *device, key_of(*this), *this);
  infer_shapes();
  if (replaced) [[unlikely]]
    replace(*replaced);
}

void Invocation::replace(const Tensor& operand) {
  replaced = &operand;
  in_place = operand.dense && operand.dtype == plan->result[0] && operand.same_shape(*out[0]) && operand.is_alone();
}

void Invocation::infer_abstract(Plan& made) {
  plan = &made;
  rules::infer_dtypes(inference_of(*this), made.compute, made.result);
  infer_shapes();
}

void call(const Op& op, Device* device, const Tensor* const* in, int n_in, Attrs& attrs, Tensor* out) {
  Invocation inv(op, device, in, n_in, attrs);
  for (uint32_t i = 0; i < op.spec.n_out; ++i) inv.out[i] = &out[i];
  const auto dispatch = [&] {
    inv.infer();
    inv.run();
  };
  if (recording()) [[unlikely]]
    return run_recorded(op.spec.name.c_str(), dispatch);
  dispatch();
}
}  // namespace dovetail
