// The device's primary context, which all of a process share: arrays can be passed between libraries.
#pragma once
#include "driver/driver.hpp"

namespace gpu {
class Context {
 public:
  explicit Context(CUdevice device) : device_(device) { GPU_CALL(cuDevicePrimaryCtxRetain(&handle_, device)); }
  ~Context() { driver().cuDevicePrimaryCtxRelease(device_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  CUdevice device() const { return device_; }
  CUcontext handle() const { return handle_; }

 private:
  const CUdevice device_;
  CUcontext handle_ = nullptr;
};

// Current in this thread while it lives. What was before it comes back: other libraries count on it.
class Current {
 public:
  explicit Current(const Context& context) {
    CUcontext now = nullptr;
    GPU_CALL(cuCtxGetCurrent(&now));
    if (now == context.handle()) return;
    GPU_CALL(cuCtxPushCurrent(context.handle()));
    pushed_ = true;
  }
  ~Current() {
    CUcontext popped;
    if (pushed_) driver().cuCtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  bool pushed_ = false;
};
}  // namespace gpu
