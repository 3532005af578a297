// Runs of instructions as LLVM IR: one loop for each, with the values between them in vector registers.
#pragma once
#include <string>

#include "compile/group.hpp"
#include "isa.hpp"

namespace dovetail::cpu {
// Whether generated code of this level can do the instruction, with the bits of its loop on tiles.
bool has_text(const Group&, const Instruction&, Level);

// Whether it does so by a call of Elementwise::vector_function.
bool is_called(const Group&, const Instruction&);

// Whether it can widen and narrow these, with the bits of the tiles' conversions.
bool has_half(Half, Level);

// A request to the toolchain "llvm" (docs/toolchains.md) for the group's generated loops; function i is loop i, a
// GeneratedFunction. Vectors and features are those of the level.
std::string request_to_llvm(const Group&, Level);
}  // namespace dovetail::cpu
