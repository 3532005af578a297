// Convolution (strictly, cross-correlation) by cuDNN; used as cudnn/attention.hpp is.
#pragma once
#include "cudnn/plans.hpp"

namespace gpu::cudnn {
// Images x (N, C, H, W), weights (O, C / groups, h, w), and a bias (O) where it is wanted. Groups follow from the
// sizes.
struct ConvolutionGraph {
  DLDataType type;
  uint32_t has_bias;
  Operand x, weight, y;
  int64_t padding[2], step[2], dilation[2];
  int64_t allows_tf32;  // of float32: may it be computed with 10 bits of mantissa?
};
enum ConvolutionOperand { convolution_x, convolution_weight, convolution_bias, convolution_y };

PlanRef plan(dvt_device*, const ConvolutionGraph&);
}  // namespace gpu::cudnn
