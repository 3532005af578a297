// Buffers, pinned memory, statistics.
#include "api/api.hpp"
#include "device/packs.hpp"
#include "device/pinned.hpp"

using namespace dovetail;
using namespace dovetail::api;

dvr_status dvr_alloc(dvr_device* device, uint64_t bytes, dvr_buffer** out) {
  return guarded("alloc", [&] {
    Device& d = to(device);
    dvr_buffer*& result = expect(out, "the result");
    d.check_usable();
    result = reinterpret_cast<dvr_buffer*>(allocate(d, d.index, current_stream(d), bytes));
  });
}

namespace {
struct Owner {
  void (*release)(void*);
  void* owner;
};
}  // namespace

dvr_status dvr_adopt(dvr_device* device, void* data, void (*release)(void*), void* owner, dvr_buffer** out) {
  return guarded("adopt", [&] {
    Device& d = to(device);
    expect(static_cast<char*>(data), "the memory");
    dvr_buffer*& result = expect(out, "the result");
    auto kept = std::make_unique<Owner>(Owner{release, owner});
    const auto end = [](Storage* s) {
      const std::unique_ptr<Owner> o(static_cast<Owner*>(s->owner));
      if (o->release) o->release(o->owner);
    };
    result = reinterpret_cast<dvr_buffer*>(adopt(d, current_stream(d), data, end, kept.get()));
    kept.release();
  });
}

void dvr_retain(dvr_buffer* b) {
  if (b) retain(&to(b));
}
void dvr_release(dvr_buffer* b) {
  if (b) release(&to(b));
}
void* dvr_data(const dvr_buffer* b) { return b ? to(b).data : nullptr; }

dvr_status dvr_host_access(dvr_buffer* b, uint32_t write) {
  return guarded("host_access", [&] {
    host_access(to(b), write);
    if (write) value_changes(to(b));
  });
}

dvr_status dvr_use(dvr_buffer* b, dvr_stream* s, uint32_t write) {
  return guarded("use", [&] {
    Storage& storage = to(b);
    use(storage, to(s), write);
    if (write) value_changes(storage);
  });
}

dvr_status dvr_alloc_pinned(dvr_device* d, uint64_t bytes, void** out, uint32_t* pinned) {
  return guarded("alloc_pinned", [&] {
    void*& result = expect(out, "the result");
    const PinnedMemory made = allocate_pinned(to(d), bytes);
    result = made.data;
    if (pinned) *pinned = made.pinned;
  });
}

dvr_status dvr_free_pinned(void* data) {
  return guarded("free_pinned", [&] { free_pinned(data); });
}

dvr_status dvr_memory_stats(dvr_device* d, dvr_memory_stats_info* out) {
  return guarded("memory_stats", [&] {
    const MemoryStats s = memory_stats(to(d));
    put_info(
        {0, 0, s.in_use, s.peak, s.cached, s.reserved, s.packed, s.limit, s.device_allocations, s.device_frees},
        out);
  });
}
dvr_status dvr_reset_peak(dvr_device* d) {
  return guarded("reset_peak", [&] { reset_peak_memory(to(d)); });
}
dvr_status dvr_set_memory_limit(dvr_device* d, uint64_t bytes) {
  return guarded("set_memory_limit", [&] { set_memory_limit(to(d), bytes); });
}
dvr_status dvr_empty_cache(dvr_device* d) {
  return guarded("empty_cache", [&] { empty_cache(to(d)); });
}
