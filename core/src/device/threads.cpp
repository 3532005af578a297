// One job at a time: its caller opens a gate, works along, closes the gate and waits for those who came in. Workers
// look for a new job for a short while, then sleep.
#include "device/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "device/environment.hpp"
#include "device/fork.hpp"
#include "error.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
using Chunk = void (*)(void*, uint64_t, uint64_t, uint32_t);
// Longer than most pauses between two loops of a program: a processor that sleeps wakes slowly, above all a virtual
// one, and the scheduler rather puts two threads on the one that is awake.
constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(30), kYield = std::chrono::milliseconds(2);
constexpr uint32_t kChunksPerThread = 4;  // so that a thread that is late costs little

// The chunks that one thread begins with, the same ones in every loop of the same size: what the thread read or
// wrote before is in its caches. When they are done it helps the other threads with theirs.
struct alignas(64) Share {
  std::atomic<uint64_t> next{0};
  uint64_t end = 0;
};

// Waits until done(), for about kSpin with the processor and until kYield only while nothing else wants it; false
// if that was not enough.
template <class Done>
bool spin(Done done) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto waited = begin - begin; waited < kYield; waited = std::chrono::steady_clock::now() - begin) {
    if (waited >= kSpin) std::this_thread::yield();
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      platform::relax();
    }
  }
  return done();
}

class ThreadPool {
 public:
  // False: the pool is busy, the caller works alone.
  bool run(uint64_t n, uint64_t chunks, uint32_t threads, Chunk fn, void* ctx) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    start_workers(threads - 1);
    fn_ = fn, ctx_ = ctx, n_ = n, chunks_ = chunks, threads_ = threads;
    share_chunks();
    const uint32_t helpers = uint32_t(std::min<uint64_t>(threads - 1, chunks - 1));
    gate_.store(gate_.load(std::memory_order_relaxed) + kOpen, std::memory_order_release);
    signal_.fetch_add(1, std::memory_order_release);
    wake(helpers);
    work(0);
    close_gate();
    const std::exception_ptr error = std::exchange(error_, nullptr);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

 private:
  // gate_: a running number, then a bit that is set while it is open, then the number of workers inside.
  static constexpr uint32_t kOpen = 1u << 11, kInside = kOpen - 1;
  static_assert(kMaxThreads <= kInside);

  void start_workers(uint32_t wanted) {
    for (; workers_ < wanted; ++workers_) {
      try {
        std::thread([this, id = workers_ + 1, seen = signal_.load()] { serve(id, seen); }).detach();
      } catch (const std::system_error&) {  // fewer threads, then
        return;
      }
    }
  }

  void share_chunks() {
    if (threads_ > shares_.size()) shares_ = std::vector<Share>(threads_);
    const uint64_t size = chunks_ / threads_, longer = chunks_ % threads_;
    for (uint64_t i = 0, begin = 0; i < threads_; ++i) {
      shares_[i].next.store(begin, std::memory_order_relaxed);
      shares_[i].end = begin += size + (i < longer);
    }
  }

  void wake(uint32_t helpers) {
    if (helpers >= workers_ || workers_ >= threads_) return signal_.notify_all();
    for (uint32_t i = 0; i < helpers; ++i) signal_.notify_one();
  }

  void serve(uint32_t id, uint32_t seen) {
    for (;;) {
      const auto called = [&] { return signal_.load(std::memory_order_acquire) != seen; };
      if (!spin(called)) signal_.wait(seen, std::memory_order_acquire);
      seen = signal_.load(std::memory_order_acquire);
      if (!enter()) continue;
      if (id < threads_) work(id);
      leave();
    }
  }

  bool enter() {
    uint32_t gate = gate_.load(std::memory_order_acquire);
    while (gate & kOpen)
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  void leave() {
    const uint32_t gate = gate_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (!(gate & (kOpen | kInside))) gate_.notify_one();
  }
  void close_gate() {
    gate_.fetch_add(kOpen, std::memory_order_acq_rel);
    const auto empty = [&] { return !(gate_.load(std::memory_order_acquire) & kInside); };
    if (spin(empty)) return;
    for (uint32_t gate; (gate = gate_.load(std::memory_order_acquire)) & kInside;) gate_.wait(gate);
  }

  void work(uint32_t id);
  void stop(std::exception_ptr error);

  std::atomic<bool> busy_{false};
  uint32_t workers_ = 0;
  // The job; written by its caller while the gate is closed and no worker is inside.
  Chunk fn_ = nullptr;
  void* ctx_ = nullptr;
  uint64_t n_ = 0, chunks_ = 0;
  uint32_t threads_ = 0;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<Share> shares_;  // at least threads_
  alignas(64) std::atomic<uint32_t> gate_{0};
  alignas(64) std::atomic<uint32_t> signal_{0};  // changes with every job
};

thread_local constinit bool in_chunk = false;  // what it calls runs inline

void ThreadPool::work(uint32_t id) {
  const uint64_t size = n_ / chunks_, longer = n_ % chunks_;  // the first `longer` chunks have one more
  in_chunk = true;
  try {
    for (uint32_t k = 0; k < threads_; ++k) {
      Share& share = shares_[(id + k) % threads_];
      for (uint64_t i; (i = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
        const uint64_t begin = i * size + std::min(i, longer);
        fn_(ctx_, begin, begin + size + (i < longer), id);
      }
    }
  } catch (...) {
    stop(std::current_exception());
  }
  in_chunk = false;
}

// No further chunk begins.
void ThreadPool::stop(std::exception_ptr error) {
  for (uint32_t i = 0; i < threads_; ++i) shares_[i].next.store(shares_[i].end, std::memory_order_relaxed);
  const std::lock_guard guard(error_mutex_);
  if (!error_) error_ = std::move(error);
}

std::atomic<ThreadPool*> pool{nullptr};

ThreadPool& the_pool() {
  if (ThreadPool* p = pool.load(std::memory_order_acquire)) [[likely]]
    return *p;
  auto* made = new ThreadPool;
  ThreadPool* other = nullptr;
  if (pool.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *other;
}

uint32_t threads_wanted() {
  return environment_number("DOVETAIL_NUM_THREADS", 1, kMaxThreads, std::min(platform::cpu_count(), kMaxThreads));
}

// How many threads take part; 0: not yet known.
std::atomic<uint32_t> limit{0};
// The latest result of num_threads() on this thread: a kernel may have made that many scratch areas, so its loops
// must not use more threads even if another thread raises the number in between.
thread_local constinit uint32_t promised = 0;

uint32_t current_limit() {
  uint32_t n = limit.load(std::memory_order_relaxed);
  if (n) [[likely]]
    return n;
  const uint32_t wanted = threads_wanted();
  return limit.compare_exchange_strong(n, wanted) ? wanted : n;
}
}  // namespace

uint32_t num_threads() { return promised = current_limit(); }

void set_num_threads(uint32_t n) {
  if (n < 1 || n > kMaxThreads)
    throw Error(ErrorKind::value, "[set_num_threads] expected 1 to " + std::to_string(kMaxThreads) +
                                      " threads, got " + std::to_string(n));
  limit.store(n, std::memory_order_relaxed);
  promised = n;
}

void parallel_for(uint64_t n, uint64_t grain, Chunk fn, void* ctx) {
  if (!n) return;
  const uint64_t most = n / std::max<uint64_t>(grain, 1);
  if (most > 1 && !in_chunk) {
    const uint32_t now = current_limit(), threads = promised ? std::min(promised, now) : now;
    const uint64_t chunks = std::min<uint64_t>(most, uint64_t{threads} * kChunksPerThread);
    if (threads > 1 && the_pool().run(n, chunks, threads, fn, ctx)) return;
  }
  fn(ctx, 0, n, 0);
}

void forget_threads_after_fork() { pool.store(nullptr, std::memory_order_release); }
}  // namespace dovetail
