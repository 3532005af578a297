// Element types.
#pragma once
#include "dovetail/floats.hpp"
#include "kernels/common/kernel.hpp"

namespace gpu {
using dvt::Compute;
using dvt::half;
using dvt::is_narrow;
using bf16 = dvt::bfloat16;
using f8e4m3fn = dvt::float8_e4m3fn;
using f8e5m2 = dvt::float8_e5m2;

}  // namespace gpu
