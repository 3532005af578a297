#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "check.hpp"
#include "device/plugins.hpp"
#include "platform/platform.hpp"

using namespace plugins;

namespace {
Storage* take(Device& device, uint64_t bytes) {
  return allocate(device, device.index, current_stream(device), bytes);
}
}  // namespace

TEST(size_classes_hold_what_they_should) {
  for (uint32_t c = 0; c < kSizeClasses; ++c) {
    const uint64_t most = class_bytes(c), least = c ? class_bytes(c - 1) + 1 : 0;
    CHECK_EQ(size_class_of(most), c);
    CHECK_EQ(size_class_of(least), c);
    CHECK_EQ(most % 64, 0u);
    if (least > uint64_t{1} << 20) CHECK(most - least <= least / 8);
  }
  CHECK_EQ(class_bytes(kSizeClasses - 1), uint64_t{1} << 47);
  for (const uint64_t bytes : {(uint64_t{1} << 47) + 1, uint64_t{1} << 60, UINT64_MAX})
    CHECK_EQ(size_class_of(bytes), kSizeClasses);
}

TEST(a_returned_buffer_is_taken_again) {
  Storage* a = take(minimal(), 1000);
  CHECK_EQ(a->capacity, 1024u);
  CHECK_EQ(reinterpret_cast<uintptr_t>(a->data) % 64, 0u);
  void* data = a->data;
  release(a);
  Storage* b = take(minimal(), 600);
  CHECK_EQ(b->data, data);
  CHECK_EQ(b->refs.load(), 1u);
  retain(b);
  release(b);
  Storage* c = take(minimal(), 600);
  CHECK(c->data != data);
  release(b);
  release(c);
  Storage* empty = take(minimal(), 0);
  CHECK(empty->data);
  release(empty);
}

TEST(statistics_count_the_memory_of_arrays) {
  Device& device = minimal();
  empty_cache(device);
  const MemoryStats before = memory_stats(device);
  CHECK_EQ(before.cached, 0u);
  reset_peak_memory(device);
  Storage *a = take(device, 4096), *b = take(device, 3 << 20);
  MemoryStats now = memory_stats(device);
  CHECK_EQ(now.in_use, before.in_use + 4096 + (3 << 20));
  CHECK_EQ(now.peak, now.in_use);
  CHECK_EQ(now.device_allocations, before.device_allocations + 2);
  release(a);
  release(b);
  now = memory_stats(device);
  CHECK_EQ(now.in_use, before.in_use);
  CHECK_EQ(now.peak, before.in_use + 4096 + (3 << 20));
  CHECK_EQ(now.cached, 4096u + (3 << 20));
  reset_peak_memory(device);
  CHECK_EQ(memory_stats(device).peak, before.in_use);
  empty_cache(device);
  now = memory_stats(device);
  CHECK_EQ(now.cached, 0u);
  CHECK_EQ(now.device_frees, before.device_frees + 2);
}

TEST(another_threads_cache_is_emptied_too) {
  Device& device = queue().device;
  empty_cache(device);
  device.synchronize();
  const uint64_t before = queue().allocated();
  std::mutex mutex;
  std::condition_variable changed;
  int step = 0;
  const auto reach = [&](int n) {
    const std::lock_guard guard(mutex);
    step = n;
    changed.notify_all();
  };
  const auto wait = [&](int n) {
    std::unique_lock guard(mutex);
    changed.wait(guard, [&] { return step >= n; });
  };
  std::thread other([&] {
    Storage* s = take(device, 100'000);
    release(s);
    reach(1);
    wait(2);  // its thread cache holds the buffer, and the thread is idle
    s = take(device, 100'000);
    release(s);
    reach(3);
    wait(4);
  });
  wait(1);
  CHECK_EQ(memory_stats(device).cached, 131072u);
  empty_cache(device);
  device.synchronize();
  CHECK_EQ(memory_stats(device).cached, 0u);
  CHECK_EQ(queue().allocated(), before);
  reach(2);
  wait(3);
  CHECK_EQ(memory_stats(device).cached, 131072u);
  reach(4);
  other.join();  // returns its thread cache
  CHECK_EQ(memory_stats(device).cached, 131072u);
  const uint64_t allocations = memory_stats(device).device_allocations;
  release(take(device, 100'000));
  CHECK_EQ(memory_stats(device).device_allocations, allocations);
}

TEST(buffers_cross_threads) {
  Device& device = minimal();
  empty_cache(device);
  const uint64_t in_use = memory_stats(device).in_use;
  Storage* made = nullptr;
  std::thread([&] { made = take(device, 50'000); }).join();
  CHECK_EQ(memory_stats(device).in_use, in_use + 65536);
  release(made);
  CHECK_EQ(memory_stats(device).in_use, in_use);
  CHECK_EQ(memory_stats(device).cached, 65536u);
  // Buffers that one thread allocates and another frees are reused once the second thread's cache is full.
  const uint64_t most = kThreadCacheBytes + (4 << 20);
  for (int round = 0; round < 100; ++round) {
    Storage* passed[20];
    std::thread([&] {
      for (Storage*& s : passed) s = take(device, 1 << 20);
    }).join();
    for (Storage* s : passed) release(s);
  }
  CHECK(memory_stats(device).reserved <= in_use + most + 20 * (1 << 20));
  CHECK(memory_stats(device).peak <= memory_stats(device).reserved);
  empty_cache(device);
}

TEST(a_full_thread_cache_shares) {
  Device& device = minimal();
  empty_cache(device);
  std::vector<Storage*> taken;
  for (int i = 0; i < 40; ++i) taken.push_back(take(device, 8 << 20));
  for (Storage* s : taken) release(s);
  CHECK_EQ(memory_stats(device).cached, uint64_t{40} * (8 << 20));
  const uint64_t allocations = memory_stats(device).device_allocations;
  std::thread([&] {
    std::vector<Storage*> here;
    for (int i = 0; i < 30; ++i) here.push_back(take(device, 8 << 20));
    for (Storage* s : here) release(s);
  }).join();
  CHECK_EQ(memory_stats(device).device_allocations, allocations);
  empty_cache(device);
}

TEST(a_limit_is_kept) {
  Device& device = minimal();
  empty_cache(device);
  const uint64_t in_use = memory_stats(device).in_use;
  set_memory_limit(device, in_use + (4 << 20));
  Storage* a = take(device, 2 << 20);
  release(take(device, 1 << 20));  // stays in the cache until its memory is needed
  Storage* b = take(device, 2 << 20);
  CHECK_EQ(memory_stats(device).cached, 0u);
  CHECK_THROWS(Error,
               "[memory] cannot allocate 64 B on minimal:0: 4.0 MiB in use by arrays, 0 B cached, limit 4.0 MiB; "
               "free arrays or raise dovetail.memory.set_limit",
               take(device, 64));
  try {
    take(device, 64);
  } catch (const Error& e) {
    CHECK(e.kind == ErrorKind::memory);
  }
  release(a);
  Storage* c = take(device, 64);
  release(b);
  release(c);
  set_memory_limit(device, 0);
  Storage* d = take(device, 16 << 20);
  release(d);
  set_memory_limit(device, 1 << 20);  // cached memory is freed at once
  CHECK_EQ(memory_stats(device).cached, 0u);
  set_memory_limit(device, 0);
}

TEST(the_cache_of_host_memory_is_bounded) {
  static dvt_backend table = *minimal().backend->table;
  static const auto props = table.device_props;
  constexpr uint64_t total = uint64_t{1} << 30, block = uint64_t{8} << 20;
  table.name = "one_gibibyte";
  table.device_props = [](dvt_device* d, dvt_props* p) {
    const dvt_status status = props(d, p);
    p->mem_total = total;
    return status;
  };
  Device& device = *attach_backend("one_gibibyte", &table).devices.at(0);
  for (int round = 0; round < 2; ++round) {
    std::vector<Storage*> all;
    for (int i = 0; i < 60; ++i) all.push_back(take(device, block));
    CHECK(memory_stats(device).in_use >= 60 * block);
    for (Storage* s : all) release(s);
    const MemoryStats now = memory_stats(device);
    CHECK_EQ(now.in_use, 0u);
    CHECK(now.cached > 0 && now.cached <= total / 8 + kThreadCacheBytes + block);
  }
  CHECK_THROWS(Error, "(this process may use 1.0 GiB of host memory); free arrays",
               take(device, platform::host_memory() + block));
}

TEST(sizes_beyond_any_device) {
  CHECK_THROWS(Error, "no device has that much", take(minimal(), UINT64_MAX));
  CHECK_THROWS(Error, "[memory] cannot allocate", take(minimal(), uint64_t{1} << 46));
  release(take(minimal(), 100));
}

TEST(out_of_memory_empties_the_cache_and_tries_again) {
  Device& device = queue().device;
  empty_cache(device);
  device.synchronize();
  queue().limit(queue().allocated() + (8 << 20));
  release(take(device, 5 << 20));
  Storage* s = take(device, 7 << 20);  // only without the cached 5 MiB
  CHECK_THROWS(Error, "and the device has no more; free arrays", take(device, 2 << 20));
  release(s);
  release(take(device, 3 << 20));
  queue().limit(UINT64_MAX);
}

TEST(foreign_memory_is_released_once) {
  static int deleted = 0;
  static float memory[16];
  Device& device = minimal();
  Storage* s =
      adopt(device, current_stream(device), memory, [](Storage* s) { deleted += s->owner == &memory; }, &memory);
  retain(s);
  release(s);
  CHECK_EQ(deleted, 0);
  release(s);
  CHECK_EQ(deleted, 1);
}

CHECK_MAIN
