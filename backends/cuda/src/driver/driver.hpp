// The CUDA driver's functions, found in libcuda when they are first needed: nothing of NVIDIA's is linked, so that
// the plugin loads on every machine and can report what is missing there.
#pragma once
#include <cuda.h>

#include <stdexcept>
#include <string>

#include "driver/libraries.hpp"

namespace gpu {
// By the names of cuda.h, whose macros choose the version of each: cuMemAlloc is cuMemAlloc_v2.
// clang-format off
#define GPU_DRIVER_FUNCTIONS(X) \
  X(cuCtxGetCurrent) X(cuCtxGetStreamPriorityRange) X(cuCtxPopCurrent) X(cuCtxPushCurrent) \
  X(cuDeviceCanAccessPeer) X(cuDeviceGet) X(cuDeviceGetAttribute) X(cuDeviceGetCount) \
  X(cuDeviceGetMemPool) X(cuDeviceGetName) X(cuDeviceGetPCIBusId) X(cuDeviceGetUuid) \
  X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxRetain) X(cuDeviceTotalMem) X(cuDriverGetVersion) \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventElapsedTime) X(cuEventQuery) X(cuEventRecord) \
  X(cuEventSynchronize) X(cuGetErrorName) X(cuGetErrorString) X(cuGraphDestroy) X(cuGraphExecDestroy) \
  X(cuGraphInstantiate) X(cuGraphLaunch) X(cuInit) X(cuKernelGetParamInfo) X(cuKernelSetAttribute) \
  X(cuLaunchHostFunc) X(cuLaunchKernel) X(cuLibraryGetKernel) X(cuLibraryLoadData) X(cuLibraryUnload) \
  X(cuMemAlloc) X(cuMemAllocAsync) X(cuMemAllocFromPoolAsync) X(cuMemAllocManaged) X(cuMemFree) X(cuMemFreeAsync) \
  X(cuMemFreeHost) X(cuMemGetInfo) X(cuMemHostAlloc) X(cuMemPoolSetAccess) X(cuMemcpyAsync) \
  X(cuMemcpyPeerAsync) X(cuPointerGetAttribute) X(cuStreamBeginCapture) X(cuStreamCreateWithPriority) \
  X(cuStreamDestroy) X(cuStreamEndCapture) X(cuStreamGetCaptureInfo) X(cuStreamSynchronize) \
  X(cuStreamWaitEvent) X(cuTensorMapEncodeTiled)
// clang-format on

struct Driver {
#define GPU_MEMBER(f) decltype(&::f) f = nullptr;
  GPU_DRIVER_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
};

inline constexpr int oldest_driver = 13000;                        // as cuDriverGetVersion counts: CUDA 13.0
inline constexpr int oldest_capability = 80;                       // what kernels are compiled for: Ampere
inline constexpr char driver_variable[] = "DOVETAIL_CUDA_DRIVER";  // another libcuda's path, for tests

// Why there is no driver that could be used, and what helps; "" where there is one, which has been initialised.
const std::string& missing_driver();
// Throws std::logic_error if missing_driver() returned a message.
const Driver& driver();
// Does it run kernels on the host? The libraries of NVIDIA's cannot.
bool is_emulated();

// The error code that the driver returned from a call.
class Error : public std::runtime_error {
 public:
  Error(CUresult result, const char* call);
  CUresult result() const { return result_; }

 private:
  CUresult result_;
};

inline void check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw Error(result, call);
}
// Calls a function of the driver's, and throws Error where it fails.
#define GPU_CALL(call) ::gpu::check(::gpu::driver().call, #call)
// Host and device share one range of addresses.
inline CUdeviceptr address_of(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }
}  // namespace gpu
