// The headers that the kernels of backends/gpu/kernels need from this backend.
#pragma once
#include "kernels/common/raise.cuh"
#include "kernels/common/types.cuh"
