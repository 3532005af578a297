// Functions that run one after the other on a thread of their own, which starts with the first.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace emulator {
class Queue {
 public:
  Queue() = default;
  ~Queue();  // runs the queued functions first
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void push(std::function<void()>);
  void wait();  // until all functions pushed before are done
  bool is_idle();

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable pushed, done;
    std::deque<std::function<void()>> waiting;
    uint64_t n_pushed = 0, n_done = 0;
    bool started = false, closed = false;
  };
  static void run(std::shared_ptr<Shared>);
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// A point in a queue: passed when what was pushed before it is done.
class Marker {
 public:
  void pass() {
    time_ = std::chrono::steady_clock::now();
    passed_ = true;
    passed_.notify_all();
  }
  bool passed() const { return passed_; }
  void wait() const { passed_.wait(false); }
  std::chrono::steady_clock::time_point time() const { return time_; }  // once it is passed

 private:
  std::atomic<bool> passed_ = false;
  std::chrono::steady_clock::time_point time_;
};
}  // namespace emulator
