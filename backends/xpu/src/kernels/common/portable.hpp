// What the families of backends/gpu/kernels include.
#pragma once
#include "kernels/common/raise.hpp"
#include "kernels/common/types.hpp"
