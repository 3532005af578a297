// Guarded memory: zones around each of the pool's blocks, read back through the device.
#include "device/guard.hpp"

#include <atomic>
#include <thread>

#include "check.hpp"
#include "device/plugins.hpp"

using namespace plugins;

namespace {
struct Guarded {  // for a test
  Guarded() { guard_memory(true); }
  ~Guarded() { guard_memory(false); }
};
Storage* take(Device& device, uint64_t bytes, Stream& stream) {
  return allocate(device, device.index, stream, bytes);
}
Storage* take(Device& device, uint64_t bytes) { return take(device, bytes, current_stream(device)); }
unsigned char* bytes_of(Storage* s) { return static_cast<unsigned char*>(s->data); }
std::string reported(Device& device) {
  std::string all;
  for (const Overrun& o : overruns(device)) all += to_string(o) + "\n";
  return all;
}
}  // namespace

TEST(blocks_are_filled_with_junk_between_two_zones) {
  const Guarded guarded;
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{3} << 20}) {
    Storage* s = take(minimal(), size);
    CHECK_EQ(reinterpret_cast<uintptr_t>(s->data) % 64, 0u);
    for (uint64_t i = 0; i < size; i += 1 + size / 100) CHECK_EQ(int(bytes_of(s)[i]), 0xDB);
    CHECK_EQ(reported(minimal()), "");
    std::memset(s->data, 0, size);  // all of it, and no more
    release(s);
    CHECK_EQ(reported(minimal()), "");
    s = take(minimal(), size);  // the same memory again
    for (uint64_t i = 0; i < size; i += 1 + size / 100) CHECK_EQ(int(bytes_of(s)[i]), 0xDB);
    release(s);
  }
}

TEST(each_byte_in_a_zone_is_found_once) {
  const Guarded guarded;
  for (const int at : {-2048, -64, -1, 100, 101, 100 + 2047}) {
    for (const bool while_it_lives : {true, false}) {
      Storage* s = take(minimal(), 100);
      bytes_of(s)[at] ^= 1;
      const std::string expected = at < 0 ? std::to_string(-at) + " byte" : std::to_string(at - 99) + " byte";
      const auto is_found = [&] {
        const std::vector<Overrun> found = overruns(minimal());
        CHECK_EQ(found.size(), 1u);
        CHECK_EQ(to_string(found.at(0)).find("a copy wrote " + expected), 0u);
        CHECK_EQ(found.at(0).behind, at > 0);
        CHECK_EQ(found.at(0).size, 100u);
      };
      if (while_it_lives) is_found(), CHECK_EQ(reported(minimal()), "");
      release(s);
      if (!while_it_lives) is_found();
      CHECK_EQ(reported(minimal()), "");
    }
  }
}

TEST(the_last_writer_is_named) {
  const Guarded guarded;
  Storage* s = take(minimal(), 100);
  note_writer(*s, "add", 0);
  note_writer(*s, "take", 1);
  bytes_of(s)[103] ^= 1;
  bytes_of(s)[-2] ^= 1;
  CHECK_EQ(reported(minimal()),
           "[take] wrote 2 bytes before the beginning of its output 1 (100 B)\n"
           "[take] wrote 4 bytes past the end of its output 1 (100 B)\n");
  note_writer(*s, "add", kWorkspace);
  release(s);
  CHECK_EQ(reported(minimal()), "");  // reported already
}

TEST(one_zone_copied_into_another_is_seen) {
  const Guarded guarded;
  Storage *a = take(minimal(), 64), *b = take(minimal(), 64);
  std::memcpy(bytes_of(b), bytes_of(a), 64 + 16);  // a copy beyond the end
  CHECK(reported(minimal()).find("past the end") != std::string::npos);
  release(a);
  release(b);
}

TEST(queues_go_on_until_somebody_asks) {
  const Guarded guarded;
  Queue& q = queue();
  Stream& stream = *q.device.new_stream(0);
  {
    Vector a = filled(q.device, 100, 1, stream), b = filled(q.device, 100, 2, stream);
    stream.synchronize();
    Vector* out = new Vector(q.device, 100, stream);
    stream.synchronize();
    q.hold(1);
    run("add", stream, {&a, &b}, *out);
    static char* behind;
    behind = static_cast<char*>(out->storage->data) + 400;
    {
      const auto order = stream.lock();
      q.device.backend->table->streams->host_fn(stream.handle, [](void*) { std::memset(behind, 0, 8); }, nullptr);
    }
    const uint64_t in_use = memory_stats(q.device).in_use;
    delete out;  // does not wait, and its memory stays until the queue has passed it
    CHECK_EQ(memory_stats(q.device).in_use, in_use);
    q.hold(0);
    CHECK_EQ(reported(q.device), "a copy wrote 8 bytes past the end of an array (400 B)\n");
    CHECK(memory_stats(q.device).in_use < in_use);
  }
  CHECK_EQ(reported(q.device), "");
  q.device.free_stream(&stream);
}

TEST(a_lost_device_is_no_overrun) {
  const Guarded guarded;
  Queue& q = queue();
  {
    Vector v = filled(q.device, 100, 1);
    q.lose();
    CHECK_THROWS(Error, "lost", read(v));
  }
  CHECK_THROWS(Error, "lost", overruns(q.device));
  q.device.reset();
  CHECK_EQ(reported(q.device), "");
}

TEST(switched_on_and_off) {
  Device& device = minimal();
  const uint64_t before = memory_stats(device).in_use;
  Storage* plain = take(device, 5000);
  guard_memory(true);
  CHECK(enabled(guarded_memory));
  Storage* guarded = take(device, 5000);
  bytes_of(plain)[5000] ^= 1;  // the pool's own
  release(plain);
  bytes_of(guarded)[5000] ^= 1;
  guard_memory(false);
  plain = take(device, 5000);
  bytes_of(plain)[5000] ^= 1;
  release(plain);
  release(guarded);  // keeps its zones
  CHECK_EQ(reported(device), "a copy wrote 1 byte past the end of an array (4.9 KiB)\n");
  const uint64_t allocations = memory_stats(device).device_allocations;
  for (int i = 0; i < 10; ++i) release(take(device, 5000));
  CHECK_EQ(memory_stats(device).device_allocations, allocations);
  CHECK_EQ(memory_stats(device).in_use, before);
}

TEST(freed_memory_can_be_reused) {
  const Guarded guarded;
  Device& device = minimal();
  empty_cache(device);
  set_memory_limit(device, memory_stats(device).reserved + (10 << 20));
  for (int round = 0; round < 3; ++round) {
    std::vector<Storage*> held;
    CHECK_THROWS(Error, "cannot allocate", for (;;) held.push_back(take(device, 1 << 20)));
    CHECK(held.size() >= 8);
    for (Storage* s : held) release(s);
  }
  CHECK_THROWS(Error, "cannot allocate", take(device, uint64_t{1} << 61));
  set_memory_limit(device, 0);
  CHECK_EQ(reported(device), "");
}

TEST(buffers_of_many_threads) {
  const Guarded guarded;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      Device& device = i % 2 ? minimal() : queue().device;
      for (int n = 0; n < 200; ++n) {
        Storage* s = take(device, uint64_t(1 + 37 * n));
        note_writer(*s, "add", 0);
        release(s);
      }
    });
  std::thread asking([&] {
    while (!done)
      for (Device* device : {&minimal(), &queue().device}) CHECK_EQ(reported(*device), "");
  });
  for (std::thread& t : threads) t.join();
  done = true;
  asking.join();
}

CHECK_MAIN
