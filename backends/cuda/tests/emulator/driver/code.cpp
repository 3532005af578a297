#include "driver/code.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "driver/call.hpp"

namespace emulator {
namespace {
const ElfW(Ehdr) & own_header() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&open_code), &self);
  return *static_cast<const ElfW(Ehdr)*>(self.dli_fbase);
}

// Opened from a file in memory: dlopen takes no bytes. The file's number is its name, so it stays open, too.
class SharedLibrary {
 public:
  SharedLibrary(const void* bytes, size_t size) : file_(memfd_create("emulated_code", MFD_CLOEXEC)) {
    if (file_ < 0 || write(file_, bytes, size) != ssize_t(size))
      refuse(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a library's code");
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(file_)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) refuse(CUDA_ERROR_INVALID_IMAGE, dlerror());
  }
  ~SharedLibrary() {
    dlclose(handle_);
    close(file_);
  }
  SharedLibrary(const SharedLibrary&) = delete;
  void* find(const char* name) const { return dlsym(handle_, name); }

 private:
  const int file_;
  void* handle_;
};
}  // namespace

std::shared_ptr<const Kernel> open_code(const void* bytes) {
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0) return nullptr;
  ElfW(Ehdr) header;
  std::memcpy(&header, bytes, sizeof header);
  if (header.e_machine != own_header().e_machine) return nullptr;
  const size_t size = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;  // where linkers end files
  const auto library = std::make_shared<const SharedLibrary>(bytes, size);
  const auto kernel = reinterpret_cast<const Kernel& (*)()>(library->find("emulated_kernel"));
  if (!kernel) refuse(CUDA_ERROR_INVALID_IMAGE, "a shared library without EMULATOR_CODE");
  return {library, &kernel()};
}
}  // namespace emulator
