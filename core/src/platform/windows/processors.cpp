#include <algorithm>
#include <bit>

#include "platform/platform.hpp"
#include "platform/windows/windows.hpp"

namespace dovetail::platform {
// A group of the system has up to 64 processors. The mask is that of the process's own group, and leaves nothing
// out unless it has been set.
uint32_t cpu_count() {
  DWORD_PTR ours = 0, all = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)) ours = all = 0;
  const bool restricted = ours != all || GetActiveProcessorGroupCount() == 1;
  const uint32_t n = restricted && ours ? uint32_t(std::popcount(uint64_t(ours)))
                                        : uint32_t(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
  return std::max(std::min(n, group_cpus()), 1u);
}

bool barrier_on_all_threads() {
  FlushProcessWriteBuffers();
  return true;
}
}  // namespace dovetail::platform
