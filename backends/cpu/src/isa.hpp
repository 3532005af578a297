// What this processor can do, and the instruction set level that the kernels run at. Built for the baseline.
#pragma once
#include <cstddef>

namespace dovetail::cpu {
enum class Level { none = -1, baseline, avx2, avx512 };  // x86-64-v2, -v3, -v4

struct Features {
  Level level = Level::none;  // the highest that processor and operating system have
  bool avx512_vnni = false, avx_vnni = false, avx512_bf16 = false, avx512_fp16 = false;
  bool amx_tile = false, amx_int8 = false, amx_bf16 = false, amx_fp16 = false;
  char name[49] = "";  // as the processor calls itself
};
Features read_features();
const Features& features();  // the same, read once

const char* name(Level);  // as DOVETAIL_CPU_CAPABILITY spells it: "default", "avx2", "avx512"

// The level to run at: the highest, or what DOVETAIL_CPU_CAPABILITY says. none: it names no level or one that this
// processor lacks, and `error` says so.
Level choose_level(char* error, size_t size);

// The level at which the kernels run; none before the handshake. For libraries that choose for themselves.
Level active_level();
}  // namespace dovetail::cpu
