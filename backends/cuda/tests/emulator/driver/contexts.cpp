#include "driver/contexts.hpp"

#include <cstdio>
#include <vector>

#include "driver/call.hpp"
#include "driver/devices.hpp"
#include "driver/memory.hpp"
#include "driver/streams.hpp"

namespace emulator {
namespace {
std::mutex mutex;  // of all contexts
// This thread's stack of contexts. Never destroyed: a process closes its devices after its threads have ended.
thread_local std::vector<CUcontext>& current = *new std::vector<CUcontext>;

CUctx_st& context_of(CUdevice device) {
  static auto& all = *new std::vector<CUctx_st>(size_t(count_devices()));
  check_device(device);
  all[size_t(device)].device = device;
  return all[size_t(device)];
}

CUctx_st& known(CUcontext context) {
  for (int i = 0; i < count_devices(); ++i)
    if (&context_of(i) == context) return *context;
  refuse(CUDA_ERROR_INVALID_CONTEXT, "there is no such context");
}

std::shared_ptr<Life> life_of(const CUctx_st& context) {
  const std::lock_guard guard(mutex);
  return context.life;
}

void end(std::shared_ptr<Life> life) {
  if (!life) return;
  end_streams(*life);
  Memory::instance().free_all(life->device);
}

void say(int device, CUresult result, const std::string& why) {
  std::fprintf(stderr, "emulated device %d: error %d: %s\n", device, int(result), why.c_str());
}
}  // namespace

void Life::fail(CUresult result, const std::string& why) {
  CUresult none = CUDA_SUCCESS;
  if (error.compare_exchange_strong(none, result)) say(device, result, why);
}

std::shared_ptr<Life> current_life() { return current.empty() ? nullptr : life_of(*current.back()); }

std::shared_ptr<Life> require_life() {
  if (current.empty()) refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
  if (auto life = life_of(*current.back())) return life;
  refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was reset or released: it must be retained again");
}

void fail_device(int device, CUresult result, const std::string& why) {
  if (const auto life = life_of(context_of(device))) life->fail(result, why);
  else say(device, result, why);
}
}  // namespace emulator

// ---- functions of cuda.h ----------------------------------------------------------------------------------------

using namespace emulator;

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return answer("cuDevicePrimaryCtxRetain", Needs::driver, [&] {
    CUctx_st& context = context_of(device);
    const std::lock_guard guard(mutex);
    if (!context.life) context.life = std::make_shared<Life>(device);
    ++context.retained;
    place_for(out) = &context;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return answer("cuDevicePrimaryCtxRelease", Needs::driver, [&] {
    CUctx_st& context = context_of(device);
    std::shared_ptr<Life> ended;
    {
      const std::lock_guard guard(mutex);
      if (!context.retained) refuse(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
      if (!--context.retained) ended = std::move(context.life);
    }
    end(std::move(ended));
  });
}

// Retained references stay, but the context is dead until it is retained again.
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return answer("cuDevicePrimaryCtxReset", Needs::driver, [&] {
    CUctx_st& context = context_of(device);
    std::shared_ptr<Life> ended;
    {
      const std::lock_guard guard(mutex);
      ended = std::move(context.life);
    }
    end(std::move(ended));
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return answer("cuDevicePrimaryCtxGetState", Needs::driver, [&] {
    place_for(flags) = 0;
    place_for(active) = life_of(context_of(device)) != nullptr;
  });
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  return answer("cuCtxGetCurrent", Needs::driver,
                [&] { place_for(out) = current.empty() ? nullptr : current.back(); });
}

CUresult cuCtxPushCurrent(CUcontext context) {
  return answer("cuCtxPushCurrent", Needs::driver, [&] { current.push_back(&known(context)); });
}

CUresult cuCtxPopCurrent(CUcontext* out) {
  return answer("cuCtxPopCurrent", Needs::driver, [&] {
    if (current.empty()) refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (out) *out = current.back();
    current.pop_back();
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return answer("cuDeviceCanAccessPeer", Needs::driver, [&] {
    check_device(device);
    check_device(peer);
    place_for(can) = are_peers(device, peer);
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return answer("cuCtxEnablePeerAccess", Needs::context, [&] {
    const auto life = require_life();
    if (flags) refuse(CUDA_ERROR_INVALID_VALUE, "flags must be 0");
    const int device = known(peer).device;
    if (device == life->device) refuse(CUDA_ERROR_INVALID_DEVICE, "a device is no peer of its own");
    const std::lock_guard guard(life->mutex);
    if (!life->peers.insert(device).second) refuse(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "it is enabled");
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return answer("cuCtxGetStreamPriorityRange", Needs::context, [&] {
    if (least) *least = lowest_priority;
    if (greatest) *greatest = highest_priority;
  });
}
