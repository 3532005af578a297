// The probe: can this library be used here? Baseline instructions only, no static constructors.
#include <cstdio>

#include "dovetail/abi.h"
#include "isa.hpp"

extern "C" int32_t dvt_probe_v1(char* reason, size_t size) {
  const dovetail::cpu::Features f = dovetail::cpu::read_features();
  if (f.level != dovetail::cpu::Level::none) return 1 + int32_t(f.level);
  if (reason && size)
    std::snprintf(reason, size, "the processor \"%s\" lacks SSE4.2 or POPCNT: dovetail-cpu needs x86-64-v2",
                  f.name);
  return 0;
}
