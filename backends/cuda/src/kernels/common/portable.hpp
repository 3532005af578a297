// What the families of backends/gpu/kernels include.
#pragma once
#include "kernels/common/raise.cuh"
#include "kernels/common/types.cuh"
