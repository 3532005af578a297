// The other GPUs that memory is copied from and to.
#pragma once
#include <map>
#include <mutex>

#include "device/context.hpp"

namespace gpu {
class Peers {
 public:
  explicit Peers(const Context& own) : own_(own) {}

  // The context of another device. When it is first asked for, this one gets access to its memory, so that copies
  // need not pass through the host: where the driver grants it, and a copy on `stream` shows that it works.
  CUcontext context_of(CUdevice other, CUstream stream);

 private:
  const Context& own_;
  std::mutex mutex_;
  std::map<CUdevice, Context> contexts_;
};
}  // namespace gpu
