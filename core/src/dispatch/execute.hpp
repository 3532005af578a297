// What the files of dispatch/ share below the level of an op call.
#pragma once
#include "dispatch/invocation.hpp"
#include "types/scalar.hpp"

namespace dovetail {
struct Program;
// `t` in another dtype; a host scalar stays one.
Tensor cast(const Tensor& t, DType dtype, Device& device);
// A row-major copy of `t` on its device.
Tensor compact(const Tensor& t);
// A host scalar as a 0-d array on the device.
Tensor materialise(const Tensor& scalar, Device& device);
// Copies `from` (of any strides) into the elements that `to` names; same shape and dtype, one device.
void copy_into(Tensor& to, const Tensor& from);
// `t` with stride 0 where `shape` repeats it.
Tensor broadcast_view(const Tensor& t, std::span<const int64_t> shape);
// A scalar in host memory; its value is read from `bits` of that dtype.
Tensor host_scalar(DType dtype, const void* bits);
Tensor host_scalar(const Scalar&);
void set_host_scalar(Tensor& to, const Scalar&);  // `to` has no storage
Scalar scalar_of(const Tensor& host_scalar);
Tensor cast_scalar(const Tensor& scalar, DType dtype);

// The device of kind cpu that stands in for `other`; nullptr if there is none.
Device* host_device(const Device& other);
Tensor to_device(const Tensor& t, Device& device);

// By the first of these rows that would serve the call. False: none of them would. `chosen`: the caller chose
// these.
bool run_rows(Invocation&, std::span<const Plan::Candidate> rows, bool chosen = false);
std::string why_declined(Invocation&, std::span<const Plan::Candidate> rows);
// By a row; the outputs have memory already, and any strides. Throws Error(not_implemented) where no row serves the
// call.
void run_into(Invocation&);
// Throws Error where memory that the caller gives for the results of `what` has another dtype, shape or device than
// these, or strides that place an element twice. An entry of `given` may be nullptr.
void check_given(const std::string& what, const Tensor* const* given, const TensorType* const* results, size_t n,
                 const Device&);
// Copies results into such memory, where they are not there already, and makes them that memory.
void put_in_given(Tensor* const* results, const Tensor* const* given, size_t n, Device&);
// The rows of the plan that would serve the call, in the order in which they are tried.
std::vector<const dvt_kernel*> serving_rows(Invocation&);
// A line of the log where it is at debug level: who serves the call, and what others had against it.
void log_engine(const Invocation&, std::string_view engine, const std::string& refused);
// For the conformance suite, which asks whether a device can do what it declines: how many calls of an op all its
// rows declined since that was first asked, and whether the first of them is to run such a call all the same. What
// that does to the process is the row's affair.
uint64_t declined_calls(const Op&);
void serve_declined(bool);
void run_set_slice(Invocation&);
void run_decomposition(Invocation&);
void run_decomposition(Invocation&, const Executable&);
// The decomposition of the op of a call that was inferred, for its dtypes, sizes and attributes on its device.
// Throws Error(not_implemented) where there is none.
std::shared_ptr<const Executable> decomposition_of(const Invocation&);
// The ops that the decomposition of such a call calls, one for each node.
std::vector<const Op*> decomposition_ops(const Invocation&);
// Which of an op's decompositions, those that the library brings, serve a call: text that names its operands'
// dtypes (after casts) and ranks, and its attributes but for the numbers. Without ranks: those that serve every
// rank. `any`: those that serve every dtype of the value operands. `version`: with the operands and attributes that
// this version of the op has.
std::string decomposition_pattern(const Invocation&, bool ranks = true, DType any = DType::none,
                                  uint32_t version = UINT32_MAX);
// The program that the front end records for a call whose operands need no casts.
std::shared_ptr<const Program> trace_decomposition(const Invocation&);
// What core/generated/decompositions.json has for a pattern; `any` as in the pattern.
std::vector<std::shared_ptr<const Program>> shipped_decompositions(const Op&, const std::string& pattern,
                                                                   DType any);
// What a plan depends on: the operands' dtypes, and the dtype attribute.
uint64_t dtype_key(const Invocation&);
uint64_t plans_epoch();  // grows when plans are forgotten
void run_via_f32(Invocation&);
void run_on_host(Invocation&);
// Why the call, which was inferred, does not run on its device alone: the message of the kernel that is missing,
// perhaps deep in a decomposition. Empty where it does. Runs nothing, but traces decompositions.
std::string missing_kernel(const Invocation&);
std::string missing_kernel(const Executable&);  // the same for all nodes of a program
}  // namespace dovetail
