#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "system/system.hpp"

namespace dovetail::cpu {
namespace {
MEMORYSTATUSEX memory() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  GlobalMemoryStatusEx(&status);
  return status;
}
}  // namespace

uint64_t physical_memory() {
  static const uint64_t bytes = memory().ullTotalPhys;
  return bytes;
}
uint64_t free_memory() { return memory().ullAvailPhys; }

void ask_for_large_pages(char*, uint64_t) {}  // they need a right that users do not have

bool permit_tiles() { return false; }  // no code for them is built
}  // namespace dovetail::cpu
