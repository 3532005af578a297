// The kernels of groups: texts, compiled by NVRTC and loaded.
#pragma once
#include <memory>
#include <string>

#include "driver/driver.hpp"

namespace gpu {
inline constexpr char group_kernel_name[] = "group";

class GroupKernel {
 public:
  // With the context of a device of this capability current. Throws nvrtc::Refused, and Error.
  GroupKernel(const std::string& text, int capability);
  ~GroupKernel();
  GroupKernel(const GroupKernel&) = delete;
  GroupKernel& operator=(const GroupKernel&) = delete;

  CUkernel handle() const { return kernel_; }

 private:
  CUlibrary library_ = nullptr;  // of every context
  CUkernel kernel_ = nullptr;
};

// The kernel of a text, made when it is first asked for, or when others have been used since: the newest are kept.
// All devices of one capability share it.
std::shared_ptr<const GroupKernel> find_group_kernel(const std::string& text, int capability);
}  // namespace gpu
