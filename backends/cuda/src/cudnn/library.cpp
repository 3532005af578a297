#include "cudnn/library.hpp"

#include "cudnn/frontend.hpp"

namespace gpu::cudnn {
namespace {
constexpr size_t oldest_version = 91900;  // the oldest whose plans were tried

std::string version_text(size_t v) {
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}
}  // namespace

Library Functions::open() {
  // The front end opens CUDA's runtime by name, the engines the others.
  static constexpr WheelLibrary needs[] = {cudart_library, nvrtc_library, cublaslt_library};
  return Library(cudnn_library, needs);
}

std::string Functions::check(const Library& library) const {
  if (const size_t version = cudnnGetVersion(); version < oldest_version)
    return "cuDNN " + version_text(version) + " is too old: expected " + version_text(oldest_version) +
           " or newer" + library.cure();
  use_library(library.handle());
  return "";
}
}  // namespace gpu::cudnn
