// What an op and its operands' dtypes lead to on a device: dtypes, and the ways to run the call, in order.
#pragma once
#include <atomic>
#include <span>
#include <vector>

#include "device/backend.hpp"
#include "rules/op.hpp"

namespace dovetail {
struct Invocation;

// Made once, never changed, never freed.
struct Plan {
  // via_f32: narrow floats on a device whose kernel takes float32 only, and conversions between fp8 and others
  // set_slice: in the core, over dvt.copy
  // identity: the operand itself
  enum Mode : uint8_t { kernel, view, set_slice, identity, decomposition, via_f32, host_fallback };
  // One way to run the op. A call is run by the first that serves it.
  struct Candidate {
    Mode mode;
    const dvt_kernel* row = nullptr;  // of a kernel
  };
  uint64_t key;
  Mode mode;                  // of the first candidate
  bool simple;                // one row of the op's version, without query and pack: the hot path
  uint32_t n_rows = 0;        // rows of the device's table are the first candidates
  DType compute[kMaxInputs];  // operands of another dtype are cast first; a variadic operand's goes on to the end
  DType result[kMaxOutputs];
  std::vector<Candidate> candidates;

  DType compute_of(int operand) const { return compute[operand < kMaxInputs ? operand : kMaxInputs - 1]; }
  std::span<const Candidate> rows() const { return {candidates.data(), n_rows}; }
  std::span<const Candidate> without_rows() const { return std::span(candidates).subspan(n_rows); }
};

class Decompositions;  // programs of one op and their executables: decompose.cpp

// The plans of one op by device and the dtypes of a call, as one number.
struct OpPlans {
  static constexpr uint64_t kSlots = 256;
  struct Table {
    std::atomic<const Plan*> slots[kSlots]{};
  };
  static uint64_t hash(uint64_t key) { return (key * 0x9E3779B97F4A7C15u) >> 56; }
  std::atomic<Table*> tables[kMaxDevices]{};
  std::atomic<Decompositions*> decompositions{nullptr};
};
const Plan& make_plan(const Device&, uint64_t dtype_key, const Invocation&);
inline const Plan& plan_for(const Op& op, const Device& device, uint64_t dtype_key, const Invocation& call) {
  if (const OpPlans* plans = op.plans.load(std::memory_order_acquire)) [[likely]]
    if (const OpPlans::Table* t = plans->tables[device.index].load(std::memory_order_acquire)) [[likely]]
      for (uint64_t i = OpPlans::hash(dtype_key);; ++i) {
        const Plan* p = t->slots[i % OpPlans::kSlots].load(std::memory_order_acquire);
        if (!p) break;
        if (p->key == dtype_key) [[likely]]
          return *p;
      }
  return make_plan(device, dtype_key, call);
}
void forget_plans();  // after kernels or the fallback mode changed

// Fills in the candidates for the plan's dtypes; bit i of `given`: operand i is given. Throws
// Error(not_implemented) where there is none.
void choose_candidates(const Op&, const Device&, Plan&, uint64_t given);
// "float32, int64": of the operands whose bit is set in `given`; without any, of the result.
std::string dtype_list(const Plan&, uint64_t given, int n_in);

// How an op runs on a device for operands (without any: a result) of one dtype.
struct Support {
  Plan::Mode mode;  // host_fallback: not by itself
  bool cast;        // it computes in another dtype
};
std::optional<Support> support(const Op&, const Device&, DType);  // nothing: its dtype rule refuses the dtype
}  // namespace dovetail
