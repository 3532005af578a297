// The groups of functions that go beyond abi.h's frozen part.
#include <cstring>

#include "device/capture.hpp"
#include "gpu/functions.hpp"
#include "nccl/collectives.hpp"

namespace gpu {
const void* extension(const char* name, uint32_t version) {
  if (!std::strcmp(name, "dovetail.capture") && version == DVT_X_CAPTURE) return &captures;
  if (!std::strcmp(name, "dovetail.collectives") && version == DVT_X_COLLECTIVES) return &nccl::collectives;
  return nullptr;
}
}  // namespace gpu
