// One call of an op: dtype rule and kernel in one look-up, shape rule, outputs, run.
#pragma once
#include <memory>

#include "dispatch/engines.hpp"
#include "dispatch/op.hpp"

namespace dovetail {
// Attributes in schema order, and what they point to.
struct Attrs {
  dvt_attr at[kMaxAttrs] = {};
  int64_t ints[3 * DVT_MAX_NDIM + 8];  // room for the i64s of one call; longer ones live with the caller
  int n_ints = 0;

  Attrs() = default;
  Attrs(const Attrs& o) { *this = o; }
  Attrs& operator=(const Attrs& o);
  int64_t* room(int n);  // n more ints, or nullptr if they do not fit
  void set_ints(int i, std::span<const int64_t> values);

  bool given(int i) const { return at[i].kind != DVT_A_NONE; }
  int64_t i64(int i) const { return at[i].v.i; }
  bool boolean(int i) const { return at[i].v.i != 0; }
  double f64(int i) const { return at[i].v.f; }
  std::string_view str(int i) const { return {at[i].v.s, at[i].count}; }
  std::span<const int64_t> i64s(int i) const { return {at[i].v.is, at[i].count}; }
  DType dtype(int i) const { return given(i) ? dtype_of(at[i].v.dt).value_or(DType::none) : DType::none; }
};

// Equal kinds and values, strings and lists by what they hold.
bool same_value(const dvt_attr&, const dvt_attr&);
Attrs default_attrs(const Op&);
void set_default(Attrs&, int i, const ParamSpec&);

// What a dtype rule sees and decides.
struct DTypeQuery {
  const Op& op;
  int n_in;
  const DType* in;                                       // none: an optional operand not given
  DType given;                                           // the dtype attribute, none if absent
  DType* compute;                                        // to fill: per operand
  DType* result;                                         // to fill: per output
  [[noreturn]] void fail(const std::string& why) const;  // TypeError
};

struct Invocation {
  const Op& op;
  Device* device;           // of the operands; for an op without any, where the result is wanted
  const Tensor* const* in;  // n_in operands; nullptr: optional, not given
  int n_in;
  Attrs& attrs;  // rules normalise them: axes become non-negative, None becomes its meaning
  // Fresh; filled by the shape rule (shape, strides, dtype, device), then by run(). Outputs that the rule does not
  // mention have the first one's shape.
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
    run(plan->mode);
  }
  void run(Plan::Mode);
  void run_chosen();  // by the engines of engine_choice, where it covers the op

  void infer_shapes();  // given a plan
  // Output 0 may take the memory of `operand`, whose value ends with the call; after infer().
  void replace(const Tensor& operand);

  // What a shape rule uses.
  const Tensor& operand(int i) const { return *in[i]; }
  bool has(int i) const { return i < n_in && in[i]; }
  const char* param(int i) const { return op.spec.params[i].name.c_str(); }
  Tensor& output(int i, std::span<const int64_t> shape);  // sets dense strides, dtype plan->result[i], device
  [[noreturn]] void fail(ErrorKind, const std::string& why) const;  // prefixes "[op] "
  [[noreturn]] void fail(const std::string& why) const { fail(ErrorKind::value, why); }
};

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
