// The op registry. An op is data: parameters, the names of its rules, its version. core/generated/ops.inc registers
// the schema's ops through register_op; a third party's op takes the same way at run time.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dispatch/tensor.hpp"

namespace dovetail {
constexpr int kMaxInputs = 8;  // of an op that is not variadic
constexpr int kMaxOutputs = 4;
constexpr int kMaxAttrs = 8;

enum class ParamKind : uint8_t {
  // operands
  value,  // takes part in the dtype rule; Python scalars take the dtype of the arrays
  mask,   // bool
  index,  // integers, cast to int64
  raw,    // any dtype, left alone
  // attributes
  i64,
  f64,
  boolean,
  str,
  i64s /* an int or a sequence of ints */,
  dtype,
  scalar /* int, float, bool or complex */
};
constexpr bool is_operand(ParamKind k) { return k <= ParamKind::raw; }

struct AttrDefault {  // `required` for operands and for attributes without a default
  enum Kind : uint8_t { required, none, i64, f64, boolean, str, i64s } kind = required;
  int64_t i = 0;
  double f = 0;
  std::string s{};
  std::vector<int64_t> is{};
};

struct ParamSpec {
  std::string name;
  ParamKind kind;
  bool optional = false;  // an operand that may be None
  bool variadic = false;  // an operand given as a sequence of arrays: concat
  bool keyword_only = false;
  AttrDefault fallback{};
  uint32_t since = 1;  // the op version that brought this parameter
};

enum OpFlags : uint32_t {
  op_half_in_f32 = 1,  // a decomposition, or a kernel that a device lacks, computes narrow floats in float32
  op_has_decomposition = 2,
  op_must = 4,     // one of the primitives that every device has
  op_private = 8,  // for decompositions; not in a public namespace
  op_view = 16,    // metadata only: runs in the core (rules/views.cpp), shares the operand's buffer
};

struct OpSpec {
  std::string name;  // "softmax"; a third party's "acme.foo"
  uint32_t version = 1;
  std::string space;              // "", "nn", "random", "linalg": the public namespace below dovetail
  std::string shape, dtype;       // names of rules
  std::vector<ParamSpec> params;  // in Python order; operands and attributes may interleave
  uint32_t n_out = 1;
  uint32_t flags = 0;
  float tol = 0;    // ulp; for `dovetail ops` and kernels' promises
  std::string doc;  // its first line
};

struct Invocation;
struct DTypeQuery;
using ShapeRule = void (*)(Invocation&);
using DTypeRule = void (*)(DTypeQuery&);

// What (op, device, operand dtypes) leads to. Made once, never changed, never freed.
struct Plan {
  // via_f32: narrow floats on a device whose kernel takes float32 only, astype between 8-bit floats and others
  // set_slice: in the core, over dvt.copy
  // identity: floor of integers
  enum Mode : uint8_t { kernel, view, set_slice, identity, decomposition, via_f32, host_fallback };
  uint64_t key;
  Mode mode;
  bool simple;                // one row of the op's version, without query and pack: the hot path
  bool wide = false;          // operands are narrow floats, and a row of the device takes them as float32
  DType compute[kMaxInputs];  // operands of another dtype are cast first; a variadic operand's goes on to the end
  DType result[kMaxOutputs];
  std::vector<const dvt_kernel*> rows;  // in the order in which they are tried

  DType compute_of(int operand) const { return compute[operand < kMaxInputs ? operand : kMaxInputs - 1]; }
};

struct Op {
  OpSpec spec;
  std::string kernel_name;  // "dvt.softmax"
  int id = 0;               // dense, in order of registration
  int n_in = 0;             // operand parameters
  ParamKind operand_kinds[kMaxInputs] = {};
  int n_attr = 0;
  int dtype_attr = -1;          // the position of its dtype attribute, if any
  bool keyed_by_attrs = false;  // the result's dtype depends on attributes
  bool variadic = false;
  bool elementwise = false;  // by its shape rule
  ShapeRule shape = nullptr;
  DTypeRule dtype = nullptr;

  const Plan& plan(const Device& device, uint64_t dtype_key, const Invocation& call) const {
    if (const PlanTable* t = plans_[device.index].load(std::memory_order_acquire)) [[likely]]
      for (uint64_t i = hash(dtype_key);; ++i) {
        const Plan* p = t->slots[i % kSlots].load(std::memory_order_acquire);
        if (!p) break;
        if (p->key == dtype_key) [[likely]]
          return *p;
      }
    return make_plan(device, dtype_key, call);
  }

  void drop_plans() const;

 private:
  static constexpr uint64_t kSlots = 256;
  struct PlanTable {
    std::atomic<const Plan*> slots[kSlots]{};
  };
  static uint64_t hash(uint64_t key) { return (key * 0x9E3779B97F4A7C15u) >> 56; }
  const Plan& make_plan(const Device&, uint64_t dtype_key, const Invocation&) const;
  const Plan& keep_plan(const Device&, std::unique_ptr<Plan>) const;
  mutable std::atomic<PlanTable*> plans_[kMaxDevices]{};
};

// Throws Error(value) naming the op and the parameter where the spec is not sound or the name is taken.
Op& register_op(OpSpec spec);
const Op& op(const std::string& name);  // throws Error(value), with the nearest name
const Op* find_op(const std::string& name);
// How many operands a kernel row of this version of the op has: newer ones are optional and come last.
uint32_t operands_of(const Op&, uint32_t version);
std::vector<const Op*> all_ops();

// Kernel rows of a device for "dvt.softmax", in the order in which they are tried.
std::vector<const dvt_kernel*> kernel_rows(const Device&, const std::string& kernel_name);
// How an op runs on a device for operands (without any: a result) of one dtype.
struct Support {
  Plan::Mode mode;  // host_fallback: not by itself
  bool cast;        // it computes in another dtype
};
std::optional<Support> support(const Op&, const Device&, DType);  // nothing: its dtype rule refuses the dtype
// Adds rows to a device at run time, tried in this order before the rows it has. They live as long as the process.
// Throws Error(runtime) where the row asks for what no row may ask of this device.
void check_row(const dvt_kernel&, const Device&);
void add_kernels(Device&, std::span<const dvt_kernel* const>);
inline void add_kernel(Device& device, const dvt_kernel* row) { add_kernels(device, {&row, 1}); }
// All rows of a device: those added at run time, then its backend's table.
std::vector<const dvt_kernel*> kernel_table(const Device&);
void forget_plans();  // after kernels or the fallback mode changed
}  // namespace dovetail
