// find_library [FOLDER...]: looks for cuBLASLt as the plugin does, with these folders instead of an entry
// point's, and prints the file, or the message to the user.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "dovetail/backend.hpp"
#include "driver/libraries.hpp"

namespace {
std::vector<const char*> folders;

const void* extension(const dvt_host*, const char* name, uint32_t version) {
  return !std::strcmp(name, "dovetail.search") && version == DVT_X_SEARCH ? folders.data() : nullptr;
}
void log(const dvt_host*, int level, const char* message) { std::printf("level %d: %s\n", level, message); }
}  // namespace

int main(int argc, char** argv) {
  folders.assign(argv + 1, argv + argc);
  folders.push_back(nullptr);
  dvt_host host = {};
  host.struct_size = sizeof host, host.extension = extension, host.log = log;
  if (argc > 1) dvt::host = &host;
  gpu::Library library(gpu::cublaslt_library);
  int (*function)() = nullptr;
  library.find("cublasLtMatmul", function);
  if (library) {
    Dl_info where;
    if (!dladdr(reinterpret_cast<void*>(function), &where)) return 1;
    std::puts(where.dli_fname);
  } else if (argc > 1) {
    gpu::is_usable(library.missing());
  } else {
    std::puts(library.missing().c_str());
  }
}
