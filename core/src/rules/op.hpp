// The registry of declared ops. An op is data: parameters, the names of its rules, its version.
// core/generated/ops.inc registers the schema's ops through register_op; a third party's op takes the same way at
// run time.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "error.hpp"
#include "types/attributes.hpp"
#include "types/tensor_type.hpp"

namespace dovetail {
struct Inference;
struct DTypeQuery;
using ShapeRule = void (*)(Inference&);
using DTypeRule = void (*)(DTypeQuery&);
// After the shape rule: sets output 0's strides, and `offset` to its first element, so that it shows elements of
// operand 0. Returns false and does nothing where that needs a compact operand first: reshape of some strided ones.
using View = bool (*)(Inference&, int64_t& offset);

struct OpPlans;  // what dispatch has decided for an op

struct Op {
  OpSpec spec;
  std::string kernel_name;  // "dvt.softmax"
  int id = 0;               // dense, in order of registration
  int n_in = 0;             // operand parameters
  ParamKind operand_kinds[kMaxInputs] = {};
  int n_attr = 0;
  int dtype_attr = -1;                     // the position of its dtype attribute, if any
  int axis_attr = -1, keepdims_attr = -1;  // of attributes with these names
  Attrs defaults;                          // those of required attributes are DVT_A_NONE
  bool keyed_by_attrs = false;             // the result's dtype depends on attributes
  bool variadic = false;
  bool elementwise = false;  // by its shape rule
  ShapeRule shape = nullptr;
  DTypeRule dtype = nullptr;
  View view = nullptr;                           // of an op_view
  mutable std::atomic<OpPlans*> plans{nullptr};  // dispatch/plan.hpp
};

// Throws Error(value) naming the op and the parameter where the spec is not sound or the name is taken.
Op& register_op(OpSpec spec);
const Op& op(const std::string& name);  // throws Error(value), with the nearest name
const Op* find_op(const std::string& name);
// How many operands a kernel row of this version of the op has: newer ones are optional and come last.
uint32_t operands_of(const Op&, uint32_t version);
// Throws Error(type) where an attribute without a default is not among those whose bits are set in `given`.
void expect_attrs(const Op&, uint64_t given);
std::vector<const Op*> all_ops();

std::span<const OpSpec> builtin_ops();
// Held while the process forks: nobody else holds the registry's lock then, which the child could never take.
void lock_ops();
void unlock_ops();
}  // namespace dovetail
