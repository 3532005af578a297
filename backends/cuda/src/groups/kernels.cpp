#include "groups/kernels.hpp"

#include <functional>

#include "gpu/lru_cache.hpp"
#include "groups/nvrtc.hpp"

namespace gpu {
GroupKernel::GroupKernel(const std::string& text, int capability) {
  const std::string code = nvrtc::compile(text, capability);
  GPU_CALL(cuLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  const CUresult result = driver().cuLibraryGetKernel(&kernel_, library_, group_kernel_name);
  if (result != CUDA_SUCCESS) driver().cuLibraryUnload(library_);
  check(result, "cuLibraryGetKernel");
}

GroupKernel::~GroupKernel() { driver().cuLibraryUnload(library_); }

std::shared_ptr<const GroupKernel> find_group_kernel(const std::string& text, int capability) {
  using Kernel = std::shared_ptr<const GroupKernel>;
  // Compiled functions hold theirs themselves; this is for the next function with the same text. A kernel is a few
  // megabytes.
  static auto& cache = *new LruCache<std::string, Kernel, 128, std::hash<std::string>, std::equal_to<>>;
  return cache.get(std::to_string(capability) + " " + text,
                   [&] { return std::make_shared<const GroupKernel>(text, capability); });
}
}  // namespace gpu
