#include <unistd.h>

#include <algorithm>
#include <cstdio>
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
// The control group's CPU quota in whole CPUs, rounded up; 0 where there is none.
uint32_t quota() {
  long long limit, period;
  const std::string cpu_max = read_file("/sys/fs/cgroup/cpu.max");
  if (std::sscanf(cpu_max.c_str(), "%lld %lld", &limit, &period) != 2 || limit <= 0 || period <= 0) return 0;
  return uint32_t(std::min((limit + period - 1) / period, 65536LL));
}

int membarrier(int command) { return int(syscall(SYS_membarrier, command, 0, 0)); }
}  // namespace

uint32_t cpu_count() {
  uint32_t n = std::thread::hardware_concurrency();
  // The kernel refuses a mask that is smaller than its own.
  for (int room = 1024; room <= 1 << 20; room *= 4) {
    cpu_set_t* mask = CPU_ALLOC(room);
    const size_t size = CPU_ALLOC_SIZE(room);
    const bool known = mask && !sched_getaffinity(0, size, mask);
    if (known) n = uint32_t(CPU_COUNT_S(size, mask));
    CPU_FREE(mask);
    if (known) break;
  }
  const uint32_t allowed = quota();
  return std::max(allowed ? std::min(n, allowed) : n, 1u);
}

bool barrier_on_all_threads() {
  if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;
  // The first time, the kernel wants to be told beforehand.
  return !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
#else
uint32_t cpu_count() { return std::max(std::thread::hardware_concurrency(), 1u); }
bool barrier_on_all_threads() { return false; }
#endif
}  // namespace dovetail::platform
