// The caching pool of one device, behind storage.hpp.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "device/guard.hpp"
#include "device/stream.hpp"

namespace dovetail {
struct MemoryGuard;  // guard.cpp

// The streams other than Storage::stream that read a buffer since it was last written there. Guarded by
// Pool::mutex.
struct StreamUses {
  struct Use {
    Stream* stream;
    uint64_t position;  // set when the buffer is released: the stream needs the buffer up to there
  };
  std::vector<Use> at;
};

Storage* allocate_block(Device&, Stream&, uint64_t bytes);  // as allocate(), never guarded

struct Pool {
  explicit Pool(Device& device);
  Device& device;

  Storage* take_ready(Stream& stream, uint32_t size_class);  // nothing to wait for
  Storage* take_any(Stream& stream, uint32_t size_class);    // waits for the queues that used it
  Storage* grow(Stream& stream, uint32_t size_class);        // from the device; nullptr: out of memory
  void put_back(Storage* s);                                 // released, not for this thread's cache
  void empty();
  void account(int64_t bytes);  // bytes that this thread takes (or returns)
  void adopted_released(Storage* s);
  void delete_adopted();  // of what the queues are through with
  MemoryStats stats();
  void reset_peak();
  void rebind_lane(Stream& stream);  // of this thread
  void close_caches();               // until caches_may_open()
  void thread_ends(ThreadCache* cache);
  void before_fork();
  void after_fork(bool in_child);

  std::atomic<uint64_t> limit{0};

 private:
  // Threads' caches do not check for an unusable device, nor for guards or recordings, so they are off then.
  bool caches_may_open() const {
    return device.state == DeviceState::usable && !enabled(guarded_memory) && !enabled(recorded);
  }
  ThreadCache* own_cache();
  bool shut_caches();
  void open_caches(bool all);
  void spill(ThreadCache& cache);
  void shelve(Storage* s);
  Storage* take_surplus();
  Storage* unlink(uint32_t size_class, const Stream& stream, bool only_ready);
  void account(ThreadCache* cache, int64_t bytes);
  void give_back(Storage* list) noexcept;
  void renew(Storage& s, Stream& stream);
  int64_t in_use() const;
  bool may_reserve(uint64_t bytes);

  std::mutex mutex_;  // held briefly, never while calling a plugin or waiting
  Storage* free_[kSizeClasses] = {};
  uint64_t free_bytes_ = 0;   // in free_
  bool shared_;               // the memory is the host's, which NumPy and other libraries use, too
  uint64_t most_free_bytes_;  // more than this goes back to the device
  uint64_t checked_ = 0;      // reserved_ may grow so far before the control group is looked at again
  std::vector<ThreadCache*> caches_;
  int64_t ended_in_use_ = 0, ended_peak_ = 0;  // of caches that are gone
  uint64_t reserved_ = 0, reserved_peak_ = 0, allocations_ = 0, frees_ = 0;
  std::vector<Storage*> adopted_;  // released, but a queue may still be using them
  std::atomic<bool> has_adopted_{false};
  bool caches_reached_ = true;  // before_fork()
  std::vector<std::shared_ptr<MemoryGuard>> guards_;
  std::vector<Overrun> overruns_;  // not returned by overruns() yet
  std::unordered_set<Packs*> packs_;
  uint64_t packed_ = 0;  // bytes

  friend struct MemoryGuard;
  friend struct Packs;
  friend void use_slow(Storage&, Stream&, bool);
  friend void host_access(Storage&, bool);
};
}  // namespace dovetail
