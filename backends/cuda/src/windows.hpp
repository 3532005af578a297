// The host side of kernels/common/window.hpp.
#pragma once
#include "dovetail/backend.hpp"
#include "kernels/common/window.hpp"

namespace gpu {
// Of a call over images x (N, C, H, W), or (N, C, W): windows of `size` taps for each spatial axis. No dilation: 1.
Windows plan_windows(const dvt_call*, const int64_t* size, dvt::Ints step, dvt::Ints padding, dvt::Ints dilation);
}  // namespace gpu
