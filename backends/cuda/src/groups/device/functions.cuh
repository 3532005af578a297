// The functions that the texts of groups call. NVRTC compiles them with each text.
#pragma once
#if defined(GPU_EMULATED)
#include "emulator.hpp"
#endif
#define GPU_GROUP_FUNCTION static __device__
#include "gpu/groups/functions.hpp"
