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

// A file in memory: dlopen takes no bytes.
class File {
 public:
  File(const void* bytes, size_t size) : descriptor_(memfd_create("emulated_code", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, bytes, size) != ssize_t(size))
      refuse(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a library's code");
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  const int descriptor_;
};
}  // namespace

std::shared_ptr<const Kernel> open_code(const void* bytes) {
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0) return nullptr;
  ElfW(Ehdr) header;
  std::memcpy(&header, bytes, sizeof header);
  if (header.e_machine != own_header().e_machine) return nullptr;
  const File file(bytes, header.e_shoff + size_t(header.e_shnum) * header.e_shentsize);  // where linkers end files
  void* const opened = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) refuse(CUDA_ERROR_INVALID_IMAGE, dlerror());
  std::shared_ptr<void> library(opened, dlclose);
  const auto kernel = reinterpret_cast<const Kernel& (*)()>(dlsym(opened, "emulated_kernel"));
  if (!kernel) refuse(CUDA_ERROR_INVALID_IMAGE, "a shared library without EMULATOR_CODE");
  return {library, &kernel()};
}
}  // namespace emulator
