#include "groups/kernels.hpp"

#include <list>
#include <map>
#include <mutex>
#include <utility>

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

std::shared_ptr<const GroupKernel> find_group_kernel(const dvt_device& d, const std::string& text) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<int, std::string>, std::shared_ptr<const GroupKernel>>;
  const std::lock_guard guard(mutex);
  auto& kernel = known[{d.capability, text}];
  if (!kernel) kernel = std::make_shared<const GroupKernel>(text, d.capability);
  return kernel;
}
}  // namespace gpu
