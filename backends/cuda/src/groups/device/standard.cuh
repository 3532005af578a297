// What the kernels' headers take of the C++ standard library, which NVRTC does not have: it finds this text under
// the names of the library's headers.
#pragma once
#include "gpu/groups/standard.hpp"

// g++'s and nvcc's functions.
constexpr float __builtin_inff() { return __builtin_bit_cast(float, 0x7F800000u); }
constexpr float __builtin_nanf(const char*) { return __builtin_bit_cast(float, 0x7FC00000u); }
namespace std {
using ::memcpy;
}
