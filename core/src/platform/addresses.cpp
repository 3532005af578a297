#include <sys/mman.h>

#include "platform/platform.hpp"

namespace dovetail::platform {
void* reserve_addresses(uint64_t size) {
  void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void release_addresses(void* at, uint64_t size) { munmap(at, size); }
}  // namespace dovetail::platform
