// Device buffers and the caching pool. Taking and returning one on the same thread and stream is a list pop or
// push; everything else is in pool.cpp.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>

namespace dovetail {
constexpr int kMaxDevices = 32;
constexpr uint64_t kThreadCacheBytes = uint64_t{64}
                                       << 20;  // free bytes that one thread keeps to itself, per device
struct Device;
class Stream;
struct StreamUses;  // the streams other than `stream` that used a buffer: pool.hpp
struct Packs;       // what kernels made of a buffer's value in layouts of their own: packs.hpp

// Size classes: 64 bytes doubled up to 1 MiB; above that eight per power of two, so that at most an eighth is
// wasted.
constexpr uint32_t kSmallClasses = 15;
constexpr uint32_t kSizeClasses = kSmallClasses + 8 * 27;  // up to 128 TiB
constexpr uint64_t class_bytes(uint32_t size_class) {
  if (size_class < kSmallClasses) return uint64_t{64} << size_class;
  const uint32_t step = size_class - kSmallClasses;
  return uint64_t{9 + step % 8} << (17 + step / 8);
}
// kSizeClasses where no class is that large.
constexpr uint32_t size_class_of(uint64_t bytes) {
  const uint64_t last = bytes ? bytes - 1 : 0;
  if (last < uint64_t{1} << 20) [[likely]]
    return uint32_t(std::bit_width(last >> 6));
  const uint32_t log2 = uint32_t(std::bit_width(last)) - 1;
  const uint32_t size_class = kSmallClasses + (log2 - 20) * 8 + (uint32_t(last >> (log2 - 3)) & 7);
  return size_class < kSizeClasses ? size_class : kSizeClasses;
}

// A buffer's header. Free buffers keep theirs.
struct Storage {
  std::atomic<uint32_t> refs{1};
  uint32_t size_class = 0;
  void* data = nullptr;
  uint64_t capacity = 0;  // bytes taken from the device
  Device* device = nullptr;
  int device_index = 0;
  Stream* stream = nullptr;  // where it was allocated or last written
  std::atomic<StreamUses*> uses{nullptr};
  std::atomic<Packs*> packs{nullptr};
  std::atomic<uint64_t> given_to{0};    // of the calls that could have had the value packed, the last one's hash
  Storage* next = nullptr;              // in a free list
  uint64_t released_at = 0;             // in a free list: how far `stream` had come
  void (*deleter)(Storage*) = nullptr;  // set on memory that does not go back to the pool as it is: adopt()
  void* owner = nullptr;                // deleter's
  bool immutable = false;               // it is not written while it is held, although it is adopted
};

// Free buffers of one thread and device, all last used on `stream`, which runs in order: no lock, no event.
//
// The owner takes no lock either. Another thread that wants what is in here clears `stream`, makes every thread
// pass a memory barrier and waits until the owner is not `busy`: from then on the owner finds the cache closed and
// goes the slow way, where it meets a mutex.
struct ThreadCache {
  std::atomic<Stream*> stream{nullptr};  // nullptr: closed
  std::atomic<bool> busy{false};
  uint64_t free_bytes = 0;
  Storage* free[kSizeClasses + 1] = {};  // one more, always empty, for sizes beyond the largest class
  std::atomic<int64_t> in_use{0};        // bytes taken less bytes returned by this thread; others read it
  std::atomic<int64_t> peak{0};
  Stream* home = nullptr;  // what `stream` is when the cache is open

  class Turn {  // the owner's access
   public:
    explicit Turn(ThreadCache& cache) : cache_(cache) {
      cache.busy.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the other side's barrier is what orders the processor
    }
    ~Turn() { cache_.busy.store(false, std::memory_order_release); }
    Turn(const Turn&) = delete;

   private:
    ThreadCache& cache_;
  };

  Storage* pop(uint32_t size_class, const Stream& wanted) {
    const Turn turn(*this);
    if (stream.load(std::memory_order_acquire) != &wanted) [[unlikely]]
      return nullptr;
    Storage* s = free[size_class];
    if (!s) [[unlikely]]
      return nullptr;
    free[size_class] = s->next;
    free_bytes -= s->capacity;
    account(int64_t(s->capacity));
    return s;
  }
  bool push(Storage* s) {
    const Turn turn(*this);
    if (stream.load(std::memory_order_acquire) != s->stream || free_bytes >= kThreadCacheBytes) [[unlikely]]
      return false;
    s->next = free[s->size_class];
    free[s->size_class] = s;
    free_bytes += s->capacity;
    account(-int64_t(s->capacity));
    return true;
  }
  void account(int64_t bytes) {  // only the owner writes
    const int64_t now = in_use.load(std::memory_order_relaxed) + bytes;
    in_use.store(now, std::memory_order_relaxed);
    if (now > peak.load(std::memory_order_relaxed)) peak.store(now, std::memory_order_relaxed);
  }
};
// initial-exec: one fs-relative load instead of a call; small enough for the loader's static TLS reserve.
extern thread_local constinit ThreadCache* thread_caches[kMaxDevices] __attribute__((tls_model("initial-exec")));

Storage* allocate_slow(Device& device, Stream& stream, uint64_t bytes);
void release_slow(Storage* s) noexcept;
void drop_packs(Storage& s) noexcept;

// Marks a free buffer as used.
inline void hand_out(Storage& s) {
  s.refs.store(1, std::memory_order_relaxed);
  s.given_to.store(0, std::memory_order_relaxed);
}

// A buffer of at least `bytes` that work on `stream` may use at once; refs is 1. Throws Error(memory) saying what
// is held, after the cache was emptied and the allocation tried again.
inline Storage* allocate(Device& device, int device_index, Stream& stream, uint64_t bytes) {
  if (ThreadCache* cache = thread_caches[device_index]) [[likely]]
    if (Storage* s = cache->pop(size_class_of(bytes), stream)) [[likely]] {
      hand_out(*s);
      return s;
    }
  return allocate_slow(device, stream, bytes);
}

inline void retain(Storage* s) { s->refs.fetch_add(1, std::memory_order_relaxed); }

inline void release(Storage* s) {
  // The only holder needs no locked instruction: no other thread can raise the count.
  if (s->refs.load(std::memory_order_acquire) != 1 && s->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  ThreadCache* cache = thread_caches[s->device_index];
  const bool plain =
      !s->deleter && !s->uses.load(std::memory_order_relaxed) && !s->packs.load(std::memory_order_relaxed);
  if (!cache || !plain || !cache->push(s)) [[unlikely]]
    release_slow(s);
}

// Its only holder is about to write it.
inline void value_changes(Storage& s) {
  s.given_to.store(0, std::memory_order_relaxed);
  if (s.packs.load(std::memory_order_relaxed)) [[unlikely]]
    drop_packs(s);
}

// The deleter of guarded memory (guard.hpp), which is the pool's all the same.
void end_guard(Storage*);
inline bool is_pooled(const Storage& s) { return !s.deleter || s.deleter == end_guard; }

// Storage over memory of another owner; deleter(storage) is called when the last reference is gone and the
// queues that used the memory are through with it. It may come from any thread that uses the device.
Storage* adopt(Device& device, Stream& stream, void* data, void (*deleter)(Storage*), void* owner);

struct MemoryStats {          // bytes of one device, the pool's size classes counted
  uint64_t in_use, peak;      // held by arrays. The peak is exact while one thread allocates, else an upper bound
  uint64_t cached, reserved;  // free in the pool; taken from the device in all
  uint64_t packed;            // of what is in use: operands in layouts of their kernels
  uint64_t limit;             // 0 = none
  uint64_t device_allocations, device_frees;
};
MemoryStats memory_stats(Device&);
void reset_peak_memory(Device&);
void set_memory_limit(Device&, uint64_t bytes);
void empty_cache(Device&);  // gives every cached buffer back to the device, those of other threads' caches included
}  // namespace dovetail
