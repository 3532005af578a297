// What this processor can do, and the instruction set level that the kernels run at. Built for the baseline.
#pragma once
#include <cstddef>
#include <span>

namespace dovetail::cpu {
#if defined(__x86_64__)
enum class Level { none = -1, baseline, avx2, avx512 };  // x86-64-v2, -v3, -v4
#elif defined(__aarch64__)
enum class Level { none = -1, baseline, neon_bf16 };  // armv8-a; armv8.2-a with dotprod, fp16 and bf16
#endif

struct LevelName {
  const char *name, *architecture;  // as DOVETAIL_CPU_CAPABILITY spells it; as the device's properties do
};
std::span<const LevelName> level_names();  // from the baseline on
const char* name(Level);                   // "none" where it is none

struct Features {
  Level level = Level::none;    // the highest that processor and operating system have
  bool bf16_products = false;   // has instructions that multiply bfloat16
  bool sve_int8 = false;        // aarch64: SVE has such that multiply matrices of bytes
  char name[49] = "";           // as the processor calls itself
  const char* extras[12] = {};  // what else of it is of interest
  void add_extra(const char* extra, bool has) {
    size_t i = 0;
    while (extras[i]) ++i;
    if (has) extras[i] = extra;
  }
};
Features read_features();    // isa/ has one for each architecture
const Features& features();  // the same, read once

// The level to run at: the highest, or what DOVETAIL_CPU_CAPABILITY says. none: it names no level or one that this
// processor lacks, and `error` says so.
Level choose_level(char* error, size_t size);

// The level at which the kernels run; none before the handshake. For libraries that choose for themselves.
Level active_level();
// May they use this processor's instructions that multiply bfloat16? Those take and give subnormal numbers as 0.
bool may_multiply_bfloat16();
}  // namespace dovetail::cpu
