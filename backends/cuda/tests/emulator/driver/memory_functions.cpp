// Functions of cuda.h on memory.
#include <cstring>

#include "driver/capture.hpp"
#include "driver/devices.hpp"
#include "driver/memory.hpp"
#include "driver/pools.hpp"

using namespace emulator;

namespace {
using Kind = Memory::Kind;
Memory& memory() { return Memory::instance(); }

CUdeviceptr allocate(Kind kind, size_t bytes) { return memory().allocate(kind, require_life()->device, bytes); }

// Frees, like the driver, once the device has finished all its work.
void free_when_idle(CUdeviceptr address, bool pinned) {
  memory().release(address, pinned);
  for (const Stream& stream : streams_of(*require_life())) stream->queue.wait();
  memory().free(address);
}

void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, const Stream& stream) {
  memory().check(to, bytes);
  memory().check(from, bytes);
  const std::lock_guard guard(streams_mutex());
  submit(*stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}

Memory::Allocation allocation_of(CUdeviceptr address) {
  return memory().find(address).value_or(Memory::Allocation{});
}

// Whether the stream's device has access to all operands of a direct copy.
bool reaches(const Stream& stream, CUdeviceptr address) {
  const Memory::Allocation a = allocation_of(address);
  return a.kind != Kind::pooled || reaches_pool(stream->life->device, a.device);
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

// NVIDIA's driver does not detect by itself how to copy between pools that do not reach each other.
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  return answer("cuMemcpyAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    if (bytes && !(reaches(stream, to) && reaches(stream, from)))
      refuse(CUDA_ERROR_INVALID_VALUE, "memory of another device's pool, to which this one has no access");
    copy(to, from, bytes, stream);
  });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream handle) {
  return answer("cuMemcpyPeerAsync", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    const Memory::Allocation target = allocation_of(to), source = allocation_of(from);
    if (bytes && (target.device != place_for(to_context).device || source.device != place_for(from_context).device))
      refuse(CUDA_ERROR_INVALID_VALUE, "an address that is not of its context");
    const bool is_direct = target.device != source.device && reaches(stream, to) && reaches(stream, from);
    copy(to, from, is_direct && loses_direct_copies() ? 0 : bytes, stream);
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
