// Every file in src/kernels includes this first. Such a file is compiled once per instruction set level; it holds
//
//   #include "kernel.hpp"
//   namespace dovetail::cpu::DOVETAIL_CPU_ISA {
//   namespace { dvt_status run(dvt_device*, const dvt_call* c) { ... } }
//   void DOVETAIL_CPU_ROWS(Table& table) { table.add(dvt::Row("dvt.relu",
//   run).in(dvt::f32).out(dvt::f32).kernel()); }
//   }
//
// All code lives in that namespace (or in an unnamed one inside it), and no template or inline function of the
// standard library may stay un-inlined in it: the linker would keep one copy for all levels, perhaps AVX-512's, and
// "default" would run it. The build checks every object (cmake/check_level.cmake) and names the symbol. So: plain
// arrays in place of std::vector, function pointers in place of std::function, own comparators for std::sort.
// What needs the standard library or a foreign one goes to src/*.cpp, which are compiled once for the baseline.
#pragma once

#ifndef DOVETAIL_CPU_ISA  // for editors; CMake sets all three
#define DOVETAIL_CPU_ISA isa_default
#define DOVETAIL_CPU_ROWS rows
#define DVT_CODE_NAMESPACE isa_default
#endif

#include <cstddef>
#include <cstdint>

#include "dovetail/backend.hpp"
#include "table.hpp"

// The loop that follows has no dependence between iterations other than through one element: outputs may be exactly
// an input's memory (DVT_O_ALIAS).
#if defined(__clang__)
#define DOVETAIL_CPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DOVETAIL_CPU_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define DOVETAIL_CPU_INLINE [[gnu::always_inline]] inline

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
