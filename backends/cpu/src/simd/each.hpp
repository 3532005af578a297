// Loops over constants.
#pragma once
#include <utility>

#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// f(constant 0), f(constant 1), ...: arrays that f indexes by it are registers from the beginning, which they are
// not where the compiler unrolls a loop.
template <class F, int... c>
DOVETAIL_CPU_INLINE void for_each_constant(F f, std::integer_sequence<int, c...>) {
  (f.template operator()<c>(), ...);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
