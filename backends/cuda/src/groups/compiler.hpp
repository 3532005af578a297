// The compiler of groups (src/groups/compiler.cpp).
#pragma once
#include "dovetail/abi.h"

namespace gpu {
extern const dvt_compiler compiler;
}
