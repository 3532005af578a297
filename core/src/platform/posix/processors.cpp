#include <unistd.h>

#include <algorithm>
#include <thread>

#include "platform/platform.hpp"

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

namespace dovetail::platform {
#if defined(__linux__)
namespace {
int membarrier(int command) { return int(syscall(SYS_membarrier, command, 0, 0)); }
}  // namespace

uint32_t cpu_count() {
  uint32_t n = std::thread::hardware_concurrency();
  // The kernel refuses a mask that is smaller than its own.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t* mask = CPU_ALLOC(cpus);
    const size_t size = CPU_ALLOC_SIZE(cpus);
    const bool known = mask && !sched_getaffinity(0, size, mask);
    if (known) n = uint32_t(CPU_COUNT_S(size, mask));
    CPU_FREE(mask);
    if (known) break;
  }
  return std::max(std::min(n, group_cpus()), 1u);
}

bool barrier_on_all_threads() {
  if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;
  // The kernel serves a process only after it has registered.
  return !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
#else
uint32_t cpu_count() { return std::max(std::thread::hardware_concurrency(), 1u); }
bool barrier_on_all_threads() { return false; }
#endif
}  // namespace dovetail::platform
