// One call of an op: dtype rule and kernel in one look-up, shape rule, outputs, run.
#pragma once
#include <memory>

#include "dispatch/engines.hpp"
#include "dispatch/tensor.hpp"
#include "rules/inference.hpp"

namespace dovetail {
struct Invocation;
void run_simple(Invocation&);  // where plan->simple
void run_view(Invocation&);    // where plan->mode is view
// Runs the call by the first candidate that serves it.
void run_first_of(Invocation&, std::span<const Plan::Candidate>);

struct Invocation {
  // A constructor, so that each member is set once: GCC clears an aggregate of this size by a slow instruction
  // first.
  Invocation(const Op& o, Device* of, const Tensor* const* operands, int n, Attrs& attributes)
      : op(o), device(of), in(operands), n_in(n), attrs(attributes) {}

  const Op& op;
  Device* device;           // of the operands; for an op without any, where the result is wanted
  const Tensor* const* in;  // n_in operands; nullptr: optional, not given
  int n_in;
  Attrs& attrs;  // rules normalise them: axes become non-negative, None becomes its meaning
  // Fresh; filled by infer() (shape, strides, dtype, device), then by run().
  Tensor* out[kMaxOutputs] = {};
  const Plan* plan = nullptr;
  uint64_t work = 0;                 // elements or multiply-adds, by the shape rule
  const Tensor* replaced = nullptr;  // the operand whose value output 0 becomes, and whose memory it may take
  bool in_place = false;             // by infer(): nobody else holds that memory
  // nullptr, or per output: memory in which the caller wants it, checked by run_into(); an entry may be nullptr.
  // Who can write there without harm does, and shares it in `out`.
  const Tensor* const* given = nullptr;

  // The dtype rule, the shape rule and the checks; allocates nothing.
  void infer();
  // The same on abstract operands (no storage) and no device: `made` becomes the plan, without kernels.
  void infer_abstract(Plan& made);
  // After infer(): finds or makes the result. Operands stay alive for the call; the caller keeps them so.
  void run() {
    if (engine_choice) [[unlikely]]
      return run_chosen();
    if (plan->simple) [[likely]]
      return run_simple(*this);
    if (plan->mode == Plan::view) return run_view(*this);
    run_first_of(*this, plan->candidates);
  }
  void run_chosen();  // by the engines of engine_choice, where it covers the op

  void infer_shapes();  // given a plan
  // Output 0 may take the memory of `operand`, whose value ends with the call; after infer().
  void replace(const Tensor& operand);

  const Tensor& operand(int i) const { return *in[i]; }
  bool has(int i) const { return i < n_in && in[i]; }
  [[noreturn]] void fail(ErrorKind, const std::string& why) const;  // prefixes "[op] "
  [[noreturn]] void fail(const std::string& why) const { fail(ErrorKind::value, why); }
};

// The call as the op's rules see it.
inline Inference inference_of(const Invocation& inv) {
  return {inv.op,
          reinterpret_cast<const Inference::Operand*>(inv.in),
          inv.n_in,
          inv.attrs,
          inv.plan ? inv.plan->compute : nullptr,
          inv.plan ? inv.plan->result : nullptr,
          reinterpret_cast<const Inference::Output*>(inv.out)};
}

[[gnu::always_inline]] inline void Invocation::infer_shapes() {
  Inference call = inference_of(*this);
  call.infer_shapes();
  work = call.work;
  for (uint32_t i = 0; i < op.spec.n_out; ++i) out[i]->set_device(device);
}

// Calls an op from C++: infer and run. Results are in `out` (n_out of the op).
void call(const Op&, Device*, const Tensor* const* in, int n_in, Attrs&, Tensor* out);

// After infer(): runs the call and leaves its results in `given` (n_out of the op; nullptr: the result stays in
// `out`), whose memory may have any strides that place each element once, and may overlap operands. Throws Error
// where dtype, shape, device or strides are others than the call's.
void run_into(Invocation&, const Tensor* const* given);
// Whether the bytes from the first to the last element of both have a byte in common.
bool overlap(const Tensor&, const Tensor&);

// ---- decompositions ---------------------------------------------------------------------------------------------
// A composite's graph: traced once by the front end for any sizes, replayed here without it.
struct Executable;
class ProgramBuilder;
// Set by the front end: records the decomposition of inv.op on these values of the builder (-1: not given), which
// have the shapes of inv.in, and returns its results.
using DecompositionTracer = std::vector<int> (*)(const Invocation& inv, const std::shared_ptr<ProgramBuilder>&,
                                                 const std::vector<int>& operands);
extern DecompositionTracer decomposition_tracer;

// ---- fallback to another device on the host ---------------------------------------------------------------------
enum class Fallback : uint8_t { error, warn, allow };
void set_fallback(Fallback);
Fallback fallback();
struct FallbackCount {
  std::string op, device;
  uint64_t calls;
};
std::vector<FallbackCount> fallback_report(bool reset);
extern void (*on_warning)(const std::string&);  // stderr unless the front end sets it
}  // namespace dovetail
