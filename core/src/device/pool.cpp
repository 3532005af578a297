#include "device/pool.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "device/capturing.hpp"
#include "device/device.hpp"
#include "device/packs.hpp"
#include "device/queues.hpp"
#include "device/services.hpp"
#include "device/timeline.hpp"
#include "platform/platform.hpp"
#include "text.hpp"

namespace dovetail {
thread_local constinit ThreadCache* thread_caches[kMaxDevices] = {};

namespace {
constinit std::atomic<Pool*> pools[kMaxDevices] = {};
thread_local constinit bool thread_ending = false;

struct ThreadEnd {  // returns this thread's caches
  ~ThreadEnd() {
    thread_ending = true;
    for (int i = 0; i < kMaxDevices; ++i)
      if (ThreadCache* cache = std::exchange(thread_caches[i], nullptr)) pools[i].load()->thread_ends(cache);
  }
};
thread_local ThreadEnd thread_end;

bool passed(const Storage& s, const Stream* own) {
  if (s.stream != own && !s.stream->has_passed(s.released_at)) return false;
  const StreamUses* uses = s.uses.load(std::memory_order_relaxed);
  return !uses || std::all_of(uses->at.begin(), uses->at.end(), [&](const StreamUses::Use& use) {
    return use.stream == own || use.stream->has_passed(use.position);
  });
}

// Queues that have to be looked at to know more.
void poll_queues(const std::vector<StreamUses::Use>& queues) {
  for (const StreamUses::Use& queue : queues) queue.stream->poll(queue.position);
}
void add_queues_of(const Storage& s, std::vector<StreamUses::Use>& queues) {
  queues.push_back({s.stream, s.released_at});
  if (const StreamUses* uses = s.uses.load(std::memory_order_relaxed))
    queues.insert(queues.end(), uses->at.begin(), uses->at.end());
}

void stamp(Storage& s) {
  s.released_at = s.stream->position();
  if (StreamUses* uses = s.uses.load(std::memory_order_relaxed))
    for (StreamUses::Use& use : uses->at) use.position = use.stream->position();
}

[[noreturn]] void out_of_memory(Device& device, uint64_t bytes) {
  std::string why = "[memory] cannot allocate " + human_bytes(bytes) + " on " + device.name + ": ";
  if (size_class_of(bytes) >= kSizeClasses) throw Error(ErrorKind::memory, why + "no device has that much");
  const MemoryStats m = device.pool->stats();
  why += human_bytes(m.in_use) + " in use by arrays, " + human_bytes(m.cached) + " cached, ";
  why += m.limit ? "limit " + human_bytes(m.limit) : "and the device has no more";
  const bool shared = device.host_mapped && !m.limit && device.props.mem_total;
  if (shared) why += " (this process may use " + human_bytes(device.props.mem_total) + " of host memory)";
  why += m.limit ? "; free arrays or raise dovetail.memory.set_limit" : "; free arrays";
  throw Error(ErrorKind::memory, why);
}
}  // namespace

Pool::Pool(Device& device) : device(device) {
  shared_ = device.host_mapped && !device.has_streams() && device.props.mem_total;
  most_free_bytes_ = shared_ ? device.props.mem_total / 8 : UINT64_MAX;
  pools[device.index] = this;
}

// ---- caches of threads; with the mutex held ---------------------------------------------------------------------

// This thread's cache, open if it may be; nullptr while the thread ends.
ThreadCache* Pool::own_cache() {
  if (thread_ending || capturing_on(device)) return nullptr;
  ThreadCache*& cache = thread_caches[device.index];
  if (!cache) {
    (void)&thread_end;  // runs its destructor when the thread ends
    cache = new ThreadCache;
    cache->home = &current_stream(device);
    caches_.push_back(cache);
  }
  if (!cache->stream.load(std::memory_order_relaxed) && caches_may_open()) {
    spill(*cache);
    cache->stream.store(cache->home, std::memory_order_release);
  }
  return cache;
}

void Pool::spill(ThreadCache& cache) {
  for (Storage*& list : cache.free)
    while (Storage* s = list) {
      list = s->next;
      stamp(*s);
      shelve(s);
    }
  cache.free_bytes = 0;
}

void Pool::shelve(Storage* s) {
  s->next = free_[s->size_class];
  free_[s->size_class] = s;
  free_bytes_ += s->capacity;
}

// A list of what is cached beyond the limit, the largest blocks first.
Storage* Pool::take_surplus() {
  Storage* list = nullptr;
  for (int i = kSizeClasses; i-- > 0 && free_bytes_ > most_free_bytes_;)
    while (free_[i] && free_bytes_ > most_free_bytes_) {
      Storage* s = free_[i];
      free_[i] = s->next, free_bytes_ -= s->capacity;
      s->next = list, list = s;
    }
  return list;
}

void Pool::account(ThreadCache* cache, int64_t bytes) {
  if (cache) {
    cache->account(bytes);
  } else {
    ended_in_use_ += bytes;
    ended_peak_ = std::max(ended_peak_, ended_in_use_);
  }
  if (recording()) record_memory(device, bytes, in_use());
}
void Pool::account(int64_t bytes) {
  const std::lock_guard guard(mutex_);
  account(own_cache(), bytes);
}

void Pool::rebind_lane(Stream& stream) {
  const std::lock_guard guard(mutex_);
  ThreadCache* cache = thread_caches[device.index];
  if (!cache || cache->home == &stream) return;
  spill(*cache);
  cache->home = &stream;
  if (caches_may_open()) cache->stream.store(&stream, std::memory_order_release);
}

// Closes all caches to their owners. False: this system has no barrier for other threads, so that only this
// thread's is certainly closed; the others stay so until their owners come by themselves.
bool Pool::shut_caches() {
  for (ThreadCache* cache : caches_) cache->stream.store(nullptr, std::memory_order_relaxed);
  const bool all = platform::barrier_on_all_threads();
  for (ThreadCache* cache : caches_)
    while (all && cache->busy.load(std::memory_order_acquire)) std::this_thread::yield();
  return all;
}
void Pool::open_caches(bool all) {
  if (!caches_may_open()) return;
  for (ThreadCache* cache : caches_)
    if (all || cache == thread_caches[device.index]) cache->stream.store(cache->home, std::memory_order_release);
}

void Pool::close_caches() {
  const std::lock_guard guard(mutex_);
  for (ThreadCache* cache : caches_) cache->stream.store(nullptr, std::memory_order_release);
}

void Pool::thread_ends(ThreadCache* cache) {
  Storage* surplus = nullptr;
  {
    const std::lock_guard guard(mutex_);
    spill(*cache);
    ended_in_use_ += cache->in_use.load(std::memory_order_relaxed);
    ended_peak_ += cache->peak.load(std::memory_order_relaxed);
    std::erase(caches_, cache);
    delete cache;
    surplus = take_surplus();
  }
  if (surplus) give_back(surplus);
}

// ---- taking and returning ---------------------------------------------------------------------------------------

// With the mutex held. A few steps into the list are enough: what this stream returns lies in front.
Storage* Pool::unlink(uint32_t size_class, const Stream& stream, bool only_ready) {
  int steps = 0;
  for (Storage** at = &free_[size_class]; Storage* s = *at; at = &s->next) {
    if (!only_ready || passed(*s, &stream)) {
      *at = s->next;
      free_bytes_ -= s->capacity;
      return s;
    }
    if (++steps == 64) break;
  }
  return nullptr;
}

void Pool::renew(Storage& s, Stream& stream) {
  s.stream = &stream;
  delete s.uses.exchange(nullptr, std::memory_order_relaxed);
}

Storage* Pool::take_ready(Stream& stream, uint32_t size_class) {
  std::vector<StreamUses::Use> queues;
  for (const bool again : {false, true}) {
    {
      const std::lock_guard guard(mutex_);
      if (Storage* s = unlink(size_class, stream, true)) {
        renew(*s, stream);
        return s;
      }
      int looked_at = 0;
      for (Storage* s = free_[size_class]; s && !again && ++looked_at <= 4; s = s->next) add_queues_of(*s, queues);
    }
    if (queues.empty()) break;
    poll_queues(queues);
  }
  return nullptr;
}

Storage* Pool::take_any(Stream& stream, uint32_t size_class) {
  Storage* s;
  std::vector<StreamUses::Use> queues;
  {
    const std::lock_guard guard(mutex_);
    s = unlink(size_class, stream, false);
    if (!s) return nullptr;
    add_queues_of(*s, queues);
  }
  try {
    for (const StreamUses::Use& queue : queues)
      if (!queue.stream->has_passed(queue.position)) stream.wait_for(*queue.stream);
  } catch (...) {
    const std::lock_guard guard(mutex_);
    shelve(s);
    throw;
  }
  renew(*s, stream);
  return s;
}

// With the mutex held. Linux promises more memory than there is and ends the process that uses it, so what is
// reserved must fit into what the machine and the control group allow.
bool Pool::may_reserve(uint64_t bytes) {
  const uint64_t most = limit.load(std::memory_order_relaxed), after = reserved_ + bytes;
  if (most && after > most) return false;
  if (!shared_ || after <= checked_) return true;
  if (after > platform::host_memory()) return false;
  const platform::GroupMemory group = platform::group_memory();
  if (group.limit == platform::kNoLimit) {
    checked_ = platform::host_memory();
    return true;
  }
  const uint64_t spare = group.limit / 64;  // for page tables and memory that others take before the next look
  const uint64_t taken = group.used - std::min(group.used, reserved_) + spare;
  if (taken > group.limit || after > group.limit - taken) return false;
  checked_ = after + (group.limit - taken - after) / 2;  // looks more often the less there is
  return true;
}

Storage* Pool::grow(Stream& stream, uint32_t size_class) {
  const uint64_t align = device.props.alloc_align;
  const uint64_t bytes = (class_bytes(size_class) + align - 1) & ~(align - 1);
  {
    const std::lock_guard guard(mutex_);
    if (!may_reserve(bytes)) return nullptr;
    reserved_ += bytes;
  }
  void* data = nullptr;
  dvt_status status = DVT_OOM;
  std::exception_ptr unusable;
  try {
    const auto order = stream.lock();
    status = device.backend->table->alloc(device.handle, bytes, DVT_MEM_DEVICE, stream.handle, &data);
  } catch (...) {
    unusable = std::current_exception();
  }
  const bool got = status == DVT_OK && data;
  {
    const std::lock_guard guard(mutex_);
    if (got) ++allocations_, reserved_peak_ = std::max(reserved_peak_, reserved_);
    else reserved_ -= bytes;
  }
  if (unusable) std::rethrow_exception(unusable);
  if (got) {
    if (logs(Log::memory, 3)) log(Log::memory, 3, device.name + ": " + human_bytes(bytes) + " from the device");
    auto* s = new Storage;
    s->size_class = size_class, s->data = data, s->capacity = bytes;
    s->device = &device, s->device_index = device.index, s->stream = &stream;
    return s;
  }
  if (status != DVT_OK && status != DVT_OOM) device.fail(status, "[memory]");
  take_failure(status);
  return nullptr;
}

Storage* allocate_slow(Device& device, Stream& stream, uint64_t bytes) {
  device.check_usable();
  if (Capturing* const c = capturing_on(device)) [[unlikely]]
    if (Storage* s = c->allocate(stream, bytes)) return s;
  return enabled(guarded_memory) ? allocate_guarded(device, stream, bytes) : allocate_block(device, stream, bytes);
}

Storage* allocate_block(Device& device, Stream& stream, uint64_t bytes) {
  Pool& pool = *device.pool;
  pool.delete_adopted();
  const uint32_t size_class = size_class_of(bytes);
  if (size_class >= kSizeClasses) out_of_memory(device, bytes);
  Storage* s = pool.take_ready(stream, size_class);
  if (!s) s = pool.grow(stream, size_class);
  if (!s) s = pool.take_any(stream, size_class);
  for (int again = 0; !s && again < 3; ++again) {  // another thread may be quicker to take what is given back
    const bool packs = again && release_packs(device);
    if (again && release_captures) release_captures(device);
    if (logs(Log::memory))
      log(Log::memory, 2,
          device.name + ": out of memory, the cache " + (packs ? "and packed operands are" : "is") + " given back");
    pool.empty();
    if (device.host_mapped) platform::trim_heap();
    for (Stream* queue : streams_of(device)) queue->record()->wait();  // what is given back in order is free now
    s = pool.grow(stream, size_class);
  }
  if (!s) out_of_memory(device, bytes);
  hand_out(*s);
  pool.account(int64_t(s->capacity));
  return s;
}

Storage* allocate_spare(Device& device, Stream& stream, uint64_t bytes) {
  if (enabled(guarded_memory)) return allocate_guarded(device, stream, bytes);
  const uint32_t size_class = size_class_of(bytes);
  if (size_class >= kSizeClasses) return nullptr;
  Storage* s = device.pool->take_ready(stream, size_class);
  if (!s) s = device.pool->grow(stream, size_class);
  if (!s) return nullptr;
  hand_out(*s);
  device.pool->account(int64_t(s->capacity));
  return s;
}

void Pool::put_back(Storage* s) {
  stamp(*s);
  Storage* surplus = nullptr;
  {
    const std::lock_guard guard(mutex_);
    ThreadCache* cache = own_cache();
    if (cache && !s->uses.load(std::memory_order_relaxed) &&
        cache->stream.load(std::memory_order_relaxed) == s->stream) {
      if (cache->free_bytes >= kThreadCacheBytes) spill(*cache);
      if (cache->push(s)) s = nullptr;
    }
    if (s) account(cache, -int64_t(s->capacity)), shelve(s);
    surplus = take_surplus();
  }
  if (surplus) give_back(surplus);
}

void release_slow(Storage* s) noexcept {
  if (capturing && capturing->owns(*s)) [[unlikely]]
    return capturing->give_back(s);
  if (s->packs.load(std::memory_order_relaxed)) drop_packs(*s);
  if (s->deleter) s->device->pool->adopted_released(s);
  else s->device->pool->put_back(s);
}

// ---- back to the device -----------------------------------------------------------------------------------------

void Pool::give_back(Storage* list) noexcept {
  uint64_t bytes = 0, n = 0;
  while (Storage* s = list) {
    list = s->next;
    bytes += s->capacity, ++n;
    const StreamUses* uses = s->uses.load(std::memory_order_relaxed);
    try {
      if (uses)
        for (const StreamUses::Use& use : uses->at)
          if (!use.stream->has_passed(use.position)) s->stream->wait_for(*use.stream);
      const auto order = s->stream->lock();
      device.backend->table->dealloc(device.handle, s->data, DVT_MEM_DEVICE, s->stream->handle);
    } catch (...) {  // the device is lost, and its memory with it
    }
    delete uses;
    delete s;
  }
  const std::lock_guard guard(mutex_);
  reserved_ -= bytes, frees_ += n;
}

void Pool::empty() {
  delete_adopted();
  Storage* list = nullptr;
  {
    const std::lock_guard guard(mutex_);
    if (device.state != DeviceState::usable) return;
    const bool all = shut_caches();
    for (ThreadCache* cache : caches_)
      if (all || cache == thread_caches[device.index]) spill(*cache);
    open_caches(all);
    for (Storage*& free : free_)
      while (Storage* s = free) free = s->next, s->next = list, list = s;
    free_bytes_ = 0;
  }
  give_back(list);
}

// ---- memory of others -------------------------------------------------------------------------------------------

Storage* adopt(Device& device, Stream& stream, void* data, void (*deleter)(Storage*), void* owner) {
  auto* s = new Storage;
  s->data = data, s->deleter = deleter, s->owner = owner;
  s->device = &device, s->device_index = device.index, s->stream = &stream;
  return s;
}

void Pool::adopted_released(Storage* s) {
  stamp(*s);
  {
    const std::lock_guard guard(mutex_);
    adopted_.push_back(s);
    has_adopted_.store(true, std::memory_order_relaxed);
  }
  delete_adopted();
}

void Pool::delete_adopted() {
  if (!has_adopted_.load(std::memory_order_relaxed)) return;
  std::vector<Storage*> waiting, done;
  {
    const std::lock_guard guard(mutex_);
    waiting.swap(adopted_);
    has_adopted_.store(false, std::memory_order_relaxed);
  }
  std::vector<StreamUses::Use> queues;
  for (Storage* s : waiting) add_queues_of(*s, queues);
  poll_queues(queues);
  const bool usable = device.state == DeviceState::usable;  // else nothing runs any more
  std::erase_if(waiting, [&](Storage* s) {
    const bool over = !usable || passed(*s, nullptr);
    if (over) done.push_back(s);
    return over;
  });
  if (!waiting.empty()) {
    const std::lock_guard guard(mutex_);
    adopted_.insert(adopted_.end(), waiting.begin(), waiting.end());
    has_adopted_.store(true, std::memory_order_relaxed);
  }
  for (Storage* s : done) {
    s->deleter(s);
    delete s->uses.load(std::memory_order_relaxed);
    delete s;
  }
}

// ---- statistics -------------------------------------------------------------------------------------------------

int64_t Pool::in_use() const {
  int64_t bytes = ended_in_use_;
  for (const ThreadCache* cache : caches_) bytes += cache->in_use.load(std::memory_order_relaxed);
  return std::max(bytes, int64_t{0});
}

MemoryStats Pool::stats() {
  delete_adopted();
  const std::lock_guard guard(mutex_);
  MemoryStats m{};
  m.in_use = std::min(uint64_t(in_use()), reserved_);
  int64_t peak = ended_peak_;
  for (const ThreadCache* cache : caches_) peak += cache->peak.load(std::memory_order_relaxed);
  m.peak = std::clamp(uint64_t(std::max(peak, int64_t{0})), m.in_use, std::max(reserved_peak_, m.in_use));
  m.reserved = reserved_, m.cached = reserved_ - m.in_use;
  m.packed = packed_;
  m.limit = limit.load(std::memory_order_relaxed);
  m.device_allocations = allocations_, m.device_frees = frees_;
  return m;
}

void Pool::reset_peak() {
  const std::lock_guard guard(mutex_);
  ended_peak_ = ended_in_use_;
  for (ThreadCache* cache : caches_)
    cache->peak.store(cache->in_use.load(std::memory_order_relaxed), std::memory_order_relaxed);
  reserved_peak_ = reserved_;
}

MemoryStats memory_stats(Device& device) { return device.pool->stats(); }
void reset_peak_memory(Device& device) { device.pool->reset_peak(); }
void empty_cache(Device& device) { device.pool->empty(); }
void set_memory_limit(Device& device, uint64_t bytes) {
  device.pool->limit = bytes;
  if (bytes && device.pool->stats().reserved > bytes) device.pool->empty();
}

// ---- fork: the child has this thread only, and takes over what the others held ----------------------------------

void Pool::before_fork() {
  mutex_.lock();
  caches_reached_ = shut_caches();
}

void Pool::after_fork(bool in_child) {
  const ThreadCache* own = thread_caches[device.index];
  if (in_child) {
    for (ThreadCache* cache : caches_) {
      if (cache == own) continue;
      if (caches_reached_) spill(*cache);  // else its lists may be half-changed
      ended_in_use_ += cache->in_use.load(std::memory_order_relaxed);
      ended_peak_ += cache->peak.load(std::memory_order_relaxed);
    }
    std::erase_if(caches_, [&](const ThreadCache* cache) { return cache != own; });
  }
  open_caches(caches_reached_);
  mutex_.unlock();
}
}  // namespace dovetail
