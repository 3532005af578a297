// torch's own lists of what runs in the lower precision, in float32, or in the widest type of its operands.
#include <ATen/autocast_mode.h>

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

#define DOVETAIL_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define DOVETAIL_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define DOVETAIL_FP32_SET_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define DOVETAIL_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

// The lists name torch's types without their namespace.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(DOVETAIL_LOWER)
  AT_FORALL_FP32(DOVETAIL_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(DOVETAIL_FP32_SET_DTYPE)
  AT_FORALL_PROMOTE(DOVETAIL_PROMOTE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}
