// Functions of cuda.h on memory.
#include <cstring>

#include "driver/capture.hpp"
#include "driver/devices.hpp"
#include "driver/memory.hpp"

using namespace emulator;

namespace {
using Kind = Memory::Kind;
Memory& memory() { return Memory::instance(); }

CUdeviceptr allocate(Kind kind, size_t bytes) { return memory().allocate(kind, require_life()->device, bytes); }

// As the driver does: when the device has done all that it was given.
void free_when_idle(CUdeviceptr address, bool pinned) {
  memory().release(address, pinned);
  for (const Stream& stream : streams_of(*require_life())) stream->queue.wait();
  memory().free(address);
}

// With the stream and the addresses known to be right.
void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  const Stream stream = find_stream(handle);
  memory().check(to, bytes);
  memory().check(from, bytes);
  const std::lock_guard guard(streams_mutex());
  submit(*stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}

CUdevice device_of(CUmemoryPool pool) {
  const auto device = CUdevice(reinterpret_cast<uintptr_t>(pool)) - 1;
  check_device(device);
  return device;
}
}  // namespace

CUresult cuMemGetInfo(size_t* unused, size_t* total) {
  return answer("cuMemGetInfo", Needs::context, [&] {
    place_for(unused) = memory().unused(require_life()->device);
    place_for(total) = memory_of_device();
  });
}

CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
  return answer("cuMemAlloc", Needs::context, [&] {
    refuse_unsafe_in_capture();
    place_for(out) = allocate(Kind::device, bytes);
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  return answer("cuMemAllocManaged", Needs::context, [&] {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
      refuse(CUDA_ERROR_INVALID_VALUE, "expected CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST");
    refuse_unsafe_in_capture();
    place_for(out) = allocate(Kind::managed, bytes);
  });
}

CUresult cuMemFree(CUdeviceptr address) {
  return answer("cuMemFree", Needs::context, [&] {
    refuse_unsafe_in_capture();
    if (address) free_when_idle(address, false);
  });
}

CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  return answer("cuMemHostAlloc", Needs::context, [&] {
    if (flags & ~unsigned(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED))
      refuse(CUDA_ERROR_INVALID_VALUE, "unknown flags");
    refuse_unsafe_in_capture();
    place_for(out) = reinterpret_cast<void*>(allocate(Kind::pinned, bytes));
  });
}

CUresult cuMemFreeHost(void* address) {
  return answer("cuMemFreeHost", Needs::context, [&] {
    refuse_unsafe_in_capture();
    free_when_idle(reinterpret_cast<CUdeviceptr>(address), true);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream handle) {
  return answer("cuMemAllocAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream->capturing) refuse(CUDA_ERROR_NOT_SUPPORTED, "allocations of graphs are not emulated");
    place_for(out) = memory().allocate(Kind::device, stream->life->device, bytes);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return answer("cuMemFreeAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream->capturing) refuse(CUDA_ERROR_NOT_SUPPORTED, "allocations of graphs are not emulated");
    memory().release(address, false);
    submit(*stream, [=] { memory().free(address); });
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return answer("cuDeviceGetDefaultMemPool", Needs::driver, [&] {
    check_device(device);
    place_for(out) = reinterpret_cast<CUmemoryPool>(uintptr_t(device) + 1);
  });
}

// Freed memory is given back at once: there is nothing to keep or to trim.
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
    device_of(pool);
    for (size_t i = 0; i < count; ++i) {
      if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) refuse(CUDA_ERROR_INVALID_VALUE, "not a device");
      check_device(map[i].location.id);
      if (map[i].location.id == device_of(pool) && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        refuse(CUDA_ERROR_INVALID_VALUE, "a device always reaches its own pool");
    }
  });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return answer("cuMemcpyAsync", Needs::context, [&] { copy(to, from, bytes, stream); });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream stream) {
  return answer("cuMemcpyPeerAsync", Needs::context, [&] {
    const auto of = [](CUdeviceptr address) { return memory().find(address).value_or(Memory::Allocation{}); };
    if (bytes &&
        (of(to).device != place_for(to_context).device || of(from).device != place_for(from_context).device))
      refuse(CUDA_ERROR_INVALID_VALUE, "an address that is not of its context");
    copy(to, from, bytes, stream);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream handle) {
  return answer("cuMemsetD8Async", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    memory().check(to, bytes);
    if (bytes && !memory().is_in_range(to))
      refuse(CUDA_ERROR_INVALID_VALUE, "memory that the device does not know");
    const std::lock_guard guard(streams_mutex());
    submit(*stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  });
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  return answer("cuPointerGetAttribute", Needs::context, [&] {
    if (!out) refuse(CUDA_ERROR_INVALID_VALUE, "the place of the answer is null");
    const auto found = memory().find(address);
    if (!found) refuse(CUDA_ERROR_INVALID_VALUE, "memory that the driver does not know");
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<CUmemorytype*>(out) = found->kind == Kind::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(out) = found->kind == Kind::managed; break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(out) = found->device; break;
      default: refuse(CUDA_ERROR_INVALID_VALUE, "an attribute of addresses that is not emulated");
    }
  });
}
