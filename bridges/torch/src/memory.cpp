// torch's memory is the pool's: a storage holds a buffer of the runtime, which orders streams and packs weights by
// it.
#include "memory.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>
#include <map>
#include <mutex>

namespace dovetail_torch {
void release(void* buffer) { dvr_release(static_cast<dvr_buffer*>(buffer)); }

namespace {
struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex i = current_device();
    dvr_buffer* b = nullptr;
    check(dvr_alloc(device_at(i).handle, bytes, &b));
    return data_ptr(b, dvr_data(b), i);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // a bare pointer does not name its buffer
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "dovetail: bare pointers cannot be copied; copy tensors");
  }
  bool initialized() override { return !devices().empty(); }
  void emptyCache(c10::MempoolId_t) override {
    for (const DeviceEntry& d : devices()) check(dvr_empty_cache(d.handle));
  }
  void recordStream(const c10::DataPtr& p, c10::Stream s) override {
    if (p.get_context()) check(dvr_use(static_cast<dvr_buffer*>(p.get_context()), to_runtime(s), 0));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex i) override {
    dvr_memory_stats_info m{};
    m.struct_size = sizeof m;
    check(dvr_memory_stats(device_at(or_current(i)).handle, &m));
    c10::CachingDeviceAllocator::DeviceStats s;
    s.allocated_bytes[0].current = int64_t(m.in_use), s.allocated_bytes[0].peak = int64_t(m.peak);
    s.active_bytes[0] = s.allocated_bytes[0];
    s.reserved_bytes[0].current = int64_t(m.reserved), s.reserved_bytes[0].peak = int64_t(m.reserved);
    s.num_device_alloc = int64_t(m.allocations), s.num_device_free = int64_t(m.frees);
    return s;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex i) override { check(dvr_reset_peak(device_at(or_current(i)).handle)); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex i) override {
    dvr_device_info info{};
    info.struct_size = sizeof info;
    check(dvr_get_device_info(device_at(or_current(i)).handle, &info));
    return {info.mem_free, info.mem_total};
  }
};

// Host memory from which the current device copies asynchronously.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* p = nullptr;
    if (bytes) {
      check(dvr_alloc_pinned(device_at(current_device()).handle, bytes, &p, nullptr));
      const std::lock_guard lock(mutex_);
      ends_[static_cast<char*>(p)] = static_cast<char*>(p) + bytes;
    }
    return {p, p, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool contains(const void* p) {
    const std::lock_guard lock(mutex_);
    auto next = ends_.upper_bound(const_cast<char*>(static_cast<const char*>(p)));
    return next != ends_.begin() && p < std::prev(next)->second;
  }

 private:
  static void free_pinned(void* p);
  std::mutex mutex_;
  std::map<char*, char*> ends_;  // by the first byte
};
PinnedAllocator& pinned() {
  static auto& a = *new PinnedAllocator;
  return a;
}
void PinnedAllocator::free_pinned(void* p) {
  if (!p) return;
  {
    const std::lock_guard lock(pinned().mutex_);
    pinned().ends_.erase(static_cast<char*>(p));
  }
  if (dvr_free_pinned(p) != DVR_OK) TORCH_WARN("dovetail: pinned memory could not be freed");
}
}  // namespace

c10::Allocator* allocator() {
  static auto& a = *new Allocator;
  return &a;
}
c10::Allocator* pinned_allocator() { return &pinned(); }
bool is_pinned(const void* p) { return pinned().contains(p); }

c10::DataPtr data_ptr(dvr_buffer* buffer, void* data, c10::DeviceIndex index) {
  return {data, buffer, &release, torch_device(index)};
}

namespace {
// The runtime does not know what else works with adopted memory: nothing may, from its last use on.
void release_adopted(void* buffer) {
  if (dvr_host_access(static_cast<dvr_buffer*>(buffer), 1) != DVR_OK)
    TORCH_WARN("dovetail: the work with adopted memory has failed");
  release(buffer);
}
}  // namespace

dvr_buffer* adopted_buffer_of(const c10::Storage& s) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const c10::DataPtr& p = s.data_ptr();
  if (p.get_deleter() == &release || p.get_deleter() == &release_adopted)
    return static_cast<dvr_buffer*>(p.get_context());
  if (!p.get()) return nullptr;
  const c10::DeviceIndex index = s.device().index();
  dvr_device* const device = device_at(index).handle;
  check(dvr_synchronize(device));  // its owner's work
  auto owner = std::make_unique<c10::DataPtr>();
  dvr_buffer* buffer = nullptr;
  const auto drop = [](void* o) { delete static_cast<c10::DataPtr*>(o); };
  check(dvr_adopt(device, p.get(), drop, owner.get(), &buffer));
  c10::StorageImpl* const impl = s.unsafeGetStorageImpl();
  *owner.release() = impl->set_data_ptr({p.get(), buffer, &release_adopted, torch_device(index)});
  return buffer;
}

bool describe(const at::Tensor& t, dvr_tensor& to) {
  to.view.data = const_cast<void*>(t.const_data_ptr());
  to.view.ndim = int32_t(t.dim());
  to.view.shape = const_cast<int64_t*>(t.sizes().data());
  to.view.strides = const_cast<int64_t*>(t.strides().data());
  to.view.byte_offset = 0;
  to.buffer = buffer_of(t);
  return t.dim() <= DVT_MAX_NDIM && to.buffer && to_dl(t.scalar_type(), to.view.dtype);
}

void describe_bytes(const c10::Storage& s, int64_t& size, dvr_tensor& to) {
  to.view = {const_cast<void*>(s.data()), {}, 1, {DVT_UINT, 8, 1}, &size, nullptr, 0};
  to.buffer = buffer_of(s);
}

at::Tensor wrap(const dvr_tensor& result, c10::DeviceIndex index) {
  const at::ScalarType dtype = from_dl(result.view.dtype);
  const c10::IntArrayRef sizes(result.view.shape, size_t(result.view.ndim));
  const size_t bytes = size_t(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, data_ptr(result.buffer, result.view.data, index),
                       allocator(), true);
  auto t = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return t;
}

void resize_storage(const c10::Storage& storage, size_t bytes) {
  const OnDevice on(storage.device().index());
  c10::Storage larger(c10::Storage::use_byte_size_t(), bytes, allocator()->allocate(bytes), allocator(), true);
  int64_t kept = int64_t(std::min(bytes, storage.nbytes()));
  if (kept) {
    dvr_tensor from, to;
    describe_bytes(storage, kept, from);
    describe_bytes(larger, kept, to);
    check(dvr_copy(&to, &from));
  }
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(larger.mutable_data_ptr()));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

}  // namespace dovetail_torch
