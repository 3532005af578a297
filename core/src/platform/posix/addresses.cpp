#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "platform/platform.hpp"

namespace dovetail::platform {
void* reserve_addresses(uint64_t size) {
  void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void release_addresses(void* at, uint64_t size) { munmap(at, size); }

CodeMemory::CodeMemory(std::span<const std::byte> code) : size_(code.size()) {
  void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    error_ = std::string("no memory for code: ") + std::strerror(errno);
    return;
  }
  std::memcpy(at, code.data(), size_);
  char* const begin = static_cast<char*>(at);
  __builtin___clear_cache(begin, begin + size_);
  if (mprotect(at, size_, PROT_READ | PROT_EXEC)) {
    error_ = std::string("this system lets no memory that was written be run: ") + std::strerror(errno);
    munmap(at, size_);
    return;
  }
  at_ = static_cast<std::byte*>(at);
}

CodeMemory::~CodeMemory() {
  if (at_) munmap(at_, size_);
}

void add_to_perf_map(const std::string& lines) {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, lines.data(), lines.size()) < 0) errno = 0;
  close(file);
}

uint32_t page_size() { return uint32_t(sysconf(_SC_PAGESIZE)); }

uint32_t elf_machine() {
#if defined(__x86_64__)
  return 62;
#elif defined(__aarch64__)
  return 183;
#else
  return 0;
#endif
}
}  // namespace dovetail::platform
