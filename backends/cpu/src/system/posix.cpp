#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>

#include "system/system.hpp"

namespace dovetail::cpu {
uint64_t physical_memory() { return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)); }

uint64_t free_memory() {
  struct sysinfo s;
  uint64_t bytes = sysinfo(&s) ? 0 : (uint64_t{s.freeram} + s.bufferram) * s.mem_unit;
  if (std::FILE* f = std::fopen("/proc/meminfo", "re")) {
    unsigned long long kib;
    for (char line[256]; std::fgets(line, sizeof line, f);)
      if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1) bytes = kib * 1024;
    std::fclose(f);
  }
  return bytes;
}

void ask_for_large_pages(char* data, uint64_t size) {
  constexpr uintptr_t page = uintptr_t{2} << 20;
  const uintptr_t begin = (uintptr_t(data) + page - 1) & ~(page - 1), end = (uintptr_t(data) + size) & ~(page - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

bool permit_tiles() {
#if defined(__x86_64__)
  // Threads with a signal stack too small for the tiles are a cause to refuse.
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA; since Linux 5.16
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}
}  // namespace dovetail::cpu
