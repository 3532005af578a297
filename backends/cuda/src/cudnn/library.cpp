#include "cudnn/library.hpp"

#include "cudnn/frontend.hpp"

namespace gpu::cudnn {
namespace {
struct Opened {
  Functions functions;
  std::string missing;
};

std::string version_text(size_t v) {
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

Opened open() {
  // Its front end asks for CUDA's runtime by name, its engines for the others.
  static constexpr WheelLibrary needs[] = {cudart_library, nvrtc_library, cublaslt_library};
  Library library(cudnn_library, needs);
  Opened o;
  Functions& functions = o.functions;
  GPU_CUDNN_FUNCTIONS(GPU_LIBRARY_FIND)
  o.missing = library.missing();
  if (!library) return o;
  if (const size_t version = functions.cudnnGetVersion(); version < oldest_version)
    o.missing = "cuDNN " + version_text(version) + " is too old: expected " + version_text(oldest_version) +
                " or newer" + library.cure();
  else use_library(library.handle());
  return o;
}

const Opened& opened() {
  static const Opened& once = *new Opened(open());
  return once;
}
}  // namespace

const std::string& missing() { return opened().missing; }
const Functions& functions() { return opened().functions; }
}  // namespace gpu::cudnn
