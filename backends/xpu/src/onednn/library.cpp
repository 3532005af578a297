#include "onednn/library.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <sycl/sycl.hpp>

#include "dovetail/backend.hpp"

namespace gpu::onednn {
namespace {
// oneDNN's wheel puts it next to SYCL's runtime. RTLD_LOCAL: its symbols serve no other library.
bool open(Library& library) {
  Dl_info runtime;
  if (!dladdr(reinterpret_cast<void*>(&sycl::platform::get_platforms), &runtime)) return false;
  const auto path = std::filesystem::path(runtime.dli_fname).replace_filename("libdnnl.so.3");
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    dvt::host->log(dvt::host, 2, dlerror());
    return false;
  }
#define X(name)                                                                          \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, "dnnl_" #name)); \
  if (!library.name) return false;
  DOVETAIL_DNNL(X)
#undef X
  return true;
}
}  // namespace

const Library* dnnl() {
  static Library library;
  static const bool usable = open(library);
  return usable ? &library : nullptr;
}
}  // namespace gpu::onednn
