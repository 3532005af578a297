// x @ weight.T in one product of cuBLASLt, with what it can do to the sums: linear_with_activation, scaled_linear.
#pragma once
#include <optional>

#include "cublaslt/engine.hpp"
#include "dovetail/backend.hpp"

namespace gpu {
// The alignment that the host gives every operand, so that an algorithm for some shapes serves all calls with
// these.
inline constexpr unsigned linear_align_log2 = cublaslt::bias_align_log2;

struct LinearProduct {
  std::optional<cublaslt::Product> product;
  const char* reason;  // why there is none
};
inline LinearProduct refused(const char* reason) { return {std::nullopt, reason}; }
// Describes the product of a call (x, weight, ...). The caller sets the types, activation and scales.
LinearProduct linear_product(const dvt_call*);

dvt_status query_linear(dvt_device*, const LinearProduct&, dvt_answer*);
// Enqueues it, with what the library has of the call's workspace. Throws.
dvt_status enqueue_linear(dvt_device*, const dvt_call*, const LinearProduct&, const cublaslt::Addresses&,
                          void* workspace, uint64_t bytes);
dvt_status run_linear(dvt_device*, const dvt_call*, const LinearProduct&, const cublaslt::Addresses&);
}  // namespace gpu
