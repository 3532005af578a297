#include "cublaslt/library.hpp"

namespace gpu::cublaslt {
namespace {
struct Opened {
  Functions functions;
  std::string missing;
};

Opened open() {
  Library library(cublaslt_library);
  Opened o;
  Functions& functions = o.functions;
  GPU_CUBLASLT_FUNCTIONS(GPU_LIBRARY_FIND)
  o.missing = library.missing();
  return o;
}

const Opened& opened() {
  static const Opened& once = *new Opened(open());
  return once;
}
}  // namespace

const std::string& missing() { return opened().missing; }
const Functions& functions() { return opened().functions; }
}  // namespace gpu::cublaslt
