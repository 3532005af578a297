#include <cstring>

#include "platform/platform.hpp"
#include "platform/windows/text.hpp"

namespace dovetail::platform {
void* reserve_addresses(uint64_t size) { return VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS); }

void release_addresses(void* at, uint64_t) { VirtualFree(at, 0, MEM_RELEASE); }

CodeMemory::CodeMemory(std::span<const std::byte> code) : size_(code.size()) {
  void* const at = VirtualAlloc(nullptr, size_, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!at) {
    error_ = "no memory for code: " + last_error();
    return;
  }
  std::memcpy(at, code.data(), size_);
  DWORD before;
  if (!VirtualProtect(at, size_, PAGE_EXECUTE_READ, &before)) {
    error_ = "this system lets no memory that was written be run: " + last_error();
    VirtualFree(at, 0, MEM_RELEASE);
    return;
  }
  FlushInstructionCache(GetCurrentProcess(), at, size_);
  at_ = static_cast<std::byte*>(at);
}

CodeMemory::~CodeMemory() {
  if (at_) VirtualFree(at_, 0, MEM_RELEASE);
}

void add_to_perf_map(const std::string&) {}  // perf is a tool of Linux

uint32_t page_size() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
}

// Images of machine code are called as functions of Linux, which take their arguments in other registers.
uint32_t elf_machine() { return 0; }
}  // namespace dovetail::platform
