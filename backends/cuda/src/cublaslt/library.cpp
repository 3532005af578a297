#include "cublaslt/library.hpp"

#include "driver/driver.hpp"

namespace gpu::cublaslt {
namespace {
struct Opened {
  Functions functions;
  std::string missing;
  bool emulated;
};

Opened open() {
  Library library(cublaslt_library);
  Opened o = {};
  Functions& functions = o.functions;
  GPU_CUBLASLT_FUNCTIONS(GPU_LIBRARY_FIND)
  o.missing = library.missing();
  o.emulated = library && library.has(emulation_marker);
  return o;
}

const Opened& opened() {
  static const Opened& once = *new Opened(open());
  return once;
}
}  // namespace

const std::string& missing() { return opened().missing; }
const Functions& functions() { return opened().functions; }
bool works_with_emulator() { return opened().emulated; }
}  // namespace gpu::cublaslt
