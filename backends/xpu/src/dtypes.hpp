// Data types by number and by the suffix of kernels' names.
#pragma once
#include "dovetail/types.hpp"

namespace xpu {
using namespace dvt::types;
}  // namespace xpu
