#include "device/memory.hpp"

#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace gpu {
Memory::Memory(const sycl::context& context, const sycl::device& device)
    : context_(context),
      device_(device),
      total_(device.get_info<sycl::info::device::global_mem_size>()),
      says_what_is_free_(device.has(sycl::aspect::ext_intel_free_memory)) {}

void* Memory::take(uint64_t size, uint32_t kind) const {
  switch (kind) {
    case DVT_MEM_DEVICE: return sycl::aligned_alloc_device(alignment, size, device_, context_);
    case DVT_MEM_SHARED: return sycl::aligned_alloc_shared(alignment, size, device_, context_);
    default: return sycl::aligned_alloc_host(alignment, size, context_);
  }
}

void* Memory::allocate(uint64_t size, uint32_t kind) {
  const uint64_t charge = kind == DVT_MEM_PINNED ? 0 : size;
  const std::lock_guard guard(mutex_);
  // The driver of a device in host memory would promise any amount.
  if (charge > total_ - used_) return nullptr;
  void* data = take(size, kind);
  if (data) charged_[data] = charge, used_ += charge;
  return data;
}

void Memory::release(void* data) {
  const std::lock_guard guard(mutex_);
  if (const auto it = charged_.find(data); it != charged_.end()) {
    used_ -= it->second;
    charged_.erase(it);
  }
  sycl::free(data, context_);
}

uint64_t Memory::free() const {
  if (says_what_is_free_) return device_.get_info<sycl::ext::intel::info::device::free_memory>();
  const std::lock_guard guard(mutex_);
  return total_ - used_;
}

// ---- the functions of abi.h -------------------------------------------------------------------------------------

dvt_status mem_info(dvt_device* d, uint64_t* free_bytes, uint64_t* total) {
  return guarded(d, [&] {
    *free_bytes = d->memory.free(), *total = d->memory.total();
    return DVT_OK;
  });
}

dvt_status alloc(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream*, void** out) {
  return guarded(d, [&]() -> dvt_status {
    if (kind == DVT_MEM_SHARED && !d->device.has(sycl::aspect::usm_shared_allocations)) return DVT_UNSUPPORTED;
    d->deferred.sweep();
    *out = d->memory.allocate(size, kind);
    if (!*out) {  // what streams still hold is worth waiting for
      d->deferred.drain();
      *out = d->memory.allocate(size, kind);
    }
    return *out ? DVT_OK : DVT_OOM;
  });
}

void dealloc(dvt_device* d, void* data, uint32_t, dvt_stream* s) {
  try {
    if (!s) return d->memory.release(data);
    d->deferred.after(end_of(*s), [d, data] { d->memory.release(data); });
    if (!d->lost) d->deferred.sweep();
  } catch (...) {
    (void)report_exception(d);
  }
}
}  // namespace gpu
