#include "nccl/library.hpp"

#include "driver/driver.hpp"

namespace gpu::nccl {
namespace {
struct Opened {
  Functions functions;
  std::string missing;
};

Opened open() {
  Library library(nccl_library);
  Opened o = {};
  Functions& functions = o.functions;
  GPU_NCCL_FUNCTIONS(GPU_LIBRARY_FIND)
  o.missing = library.missing();
  if (library && is_emulated() && !library.has(emulation_marker))
    o.missing = "NCCL does not work with an emulated driver";
  return o;
}

const Opened& opened() {
  static const Opened& once = *new Opened(open());
  return once;
}
}  // namespace

const std::string& missing() { return opened().missing; }
const Functions& functions() { return opened().functions; }
}  // namespace gpu::nccl
