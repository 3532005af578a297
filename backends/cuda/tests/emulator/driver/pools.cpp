#include "driver/pools.hpp"

#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "driver/capture.hpp"
#include "driver/devices.hpp"
#include "driver/memory.hpp"

namespace emulator {
namespace {
// Access of devices to the pools of others. It outlives contexts, as pools do.
class Access {
 public:
  static Access& instance() {
    static Access& one = *new Access;
    return one;
  }
  void set(CUdevice device, CUdevice owner, bool wanted) {
    const std::lock_guard guard(mutex_);
    if (wanted) all_.emplace(device, owner);
    else all_.erase({device, owner});
  }
  bool has(CUdevice device, CUdevice owner) {
    const std::lock_guard guard(mutex_);
    return all_.contains({device, owner});
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<CUdevice, CUdevice>> all_;
};

CUmemoryPool pool_of(CUdevice device) {
  check_device(device);
  return reinterpret_cast<CUmemoryPool>(uintptr_t(device) + 1);
}

CUdevice device_of(CUmemoryPool pool) {
  const auto device = CUdevice(reinterpret_cast<uintptr_t>(pool)) - 1;
  check_device(device);
  return device;
}

CUdevice device_at(const CUmemLocation& location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) refuse(CUDA_ERROR_INVALID_VALUE, "not a device");
  check_device(location.id);
  return location.id;
}

CUdeviceptr allocate(const CUstream_st& stream, CUdevice owner, size_t bytes) {
  const std::lock_guard guard(streams_mutex());
  if (stream.capturing) refuse(CUDA_ERROR_NOT_SUPPORTED, "allocations of graphs are not emulated");
  return Memory::instance().allocate(Memory::Kind::pooled, owner, bytes);
}
}  // namespace

bool reaches_pool(CUdevice device, CUdevice owner) {
  return device == owner || Access::instance().has(device, owner);
}
}  // namespace emulator

// ---- functions of cuda.h ----------------------------------------------------------------------------------------

using namespace emulator;

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream handle) {
  return answer("cuMemAllocAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    place_for(out) = allocate(*stream, stream->life->device, bytes);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream handle) {
  return answer("cuMemAllocFromPoolAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    if (!reaches_pool(stream->life->device, device_of(pool)))
      refuse(CUDA_ERROR_INVALID_VALUE, "the device of the stream has no access to the pool");
    place_for(out) = allocate(*stream, device_of(pool), bytes);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return answer("cuMemFreeAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream->capturing) refuse(CUDA_ERROR_NOT_SUPPORTED, "allocations of graphs are not emulated");
    Memory::instance().release(address, false);
    submit(*stream, [=] { Memory::instance().free(address); });
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return answer("cuDeviceGetDefaultMemPool", Needs::driver, [&] { place_for(out) = pool_of(device); });
}

// Only the default pool can be set here.
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  return answer("cuDeviceGetMemPool", Needs::driver, [&] { place_for(out) = pool_of(device); });
}

// Freed memory is returned at once: there is nothing to keep or to trim.
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return answer("cuMemPoolSetAttribute", Needs::driver, [&] {
    device_of(pool);
    if (!value) refuse(CUDA_ERROR_INVALID_VALUE, "the value is null");
    if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
      refuse(CUDA_ERROR_INVALID_VALUE, "an attribute of pools that is not emulated");
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return answer("cuMemPoolTrimTo", Needs::driver, [&] { device_of(pool); });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return answer("cuMemPoolSetAccess", Needs::driver, [&] {
    const CUdevice owner = device_of(pool);
    for (const CUmemAccessDesc& one : std::span(map, count)) {
      const CUdevice device = device_at(one.location);
      if (one.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE && one.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        refuse(CUDA_ERROR_INVALID_VALUE, "expected CU_MEM_ACCESS_FLAGS_PROT_READWRITE or _NONE");
      const bool wanted = one.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (device == owner && !wanted) refuse(CUDA_ERROR_INVALID_VALUE, "a device always reaches its own pool");
      if (device != owner && wanted && !are_peers(device, owner))
        refuse(CUDA_ERROR_INVALID_DEVICE, "the devices are no peers");
      Access::instance().set(device, owner, wanted);
    }
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return answer("cuMemPoolGetAccess", Needs::driver, [&] {
    const bool reached = reaches_pool(device_at(place_for(location)), device_of(pool));
    place_for(flags) = reached ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}
