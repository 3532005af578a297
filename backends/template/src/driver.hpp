// The accelerator itself, in software: chips with memory of their own, queues of work, a clock. A real backend has
// its vendor's library instead of driver.* and settings.*. Nothing here depends on Dovetail; the author of a
// backend writes device.cpp and kernels/.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace driver {
using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;

// The settings from the environment; README.md lists them.
struct Settings {
  uint32_t chips = 2;
  uint64_t memory = uint64_t{256} << 20;  // bytes of each chip
  Duration latency{0};                    // before each kernel and copy
  double bandwidth = 0;                   // of copies, in bytes per nanosecond; 0: that of the host's memory

  struct Fault {
    enum Kind { oom, lost, delay, hold } kind;
    uint32_t chip = 0;
    uint64_t first = 0, times = UINT64_MAX;  // oom, lost: counted from 1
    std::optional<uint32_t> queue;           // delay, hold; none: every queue
    Duration time{0};                        // delay
    std::string file;                        // hold
  };
  std::vector<Fault> faults;
  std::string error;  // not empty: a variable has an invalid value
};
const Settings& settings();  // read once

// The memory of a chip, mapped twice: at the chip's own addresses, where every access by the host is a segmentation
// fault, and at other addresses for the queues' worker threads.
class Memory {
 public:
  static constexpr uint64_t alignment = 256;
  explicit Memory(uint64_t bytes);
  void* allocate(uint64_t bytes);  // an address of the chip; nullptr if no gap is large enough
  void release(void* address);
  // The worker threads' address of a chip's address; nullptr outside of this memory.
  char* at(const void* address) const;
  void spoil();  // overwrites all of it
  uint64_t size() const { return size_; }
  uint64_t free() const;

 private:
  const uint64_t size_;
  char *device_ = nullptr, *worker_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> gaps_, used_;  // offset to bytes
};

// Host memory that chips copy from and to asynchronously.
void* allocate_pinned(uint64_t bytes);
void release_pinned(void* address);
bool is_pinned(const void* address);

enum class Error { none, bad_index, lost };
struct Fault {
  Error error = Error::none;
  uint64_t call = 0;  // the call that caused it, as passed to Queue::kernel
  std::string text;
};

struct Chip {
  explicit Chip(uint32_t index) : index(index), memory(settings().memory) {}
  const uint32_t index;
  Memory memory;

  void* allocate(uint64_t bytes);  // as Memory::allocate, with the faults of the environment
  // A lost chip runs nothing until it is reset.
  bool is_lost() const { return lost_; }
  Fault loss();
  bool loses_itself(uint64_t call);  // called before each kernel
  void reset();

 private:
  std::atomic<uint64_t> allocations_{0}, kernels_{0};
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  Fault loss_;
};

struct Recording;  // kernels and copies, in the order in which queues got them

// Runs work in order, on a thread of its own. Only wait(), the destructor and, if the queue is full, kernel(),
// copy() and replay() block the caller: a host that is faster than its device waits for it.
class Queue {
 public:
  static constexpr size_t most_queued = 1024;
  using Work = std::function<void()>;
  struct Job {
    enum Kind { kernel, copy, replay, other } kind;
    uint64_t call, bytes;
    Work work;
  };
  Queue(Chip& chip, uint32_t number);
  ~Queue();  // runs the queued work first

  void kernel(uint64_t call, Work work);
  void copy(char* to, const char* from, uint64_t bytes);
  void then(Work work);                      // without delay, and on a lost chip too
  void after(Queue& other, uint64_t place);  // later work waits until `other` has passed `place`

  // From now on kernels and copies go to the recording instead, until it ends: several queues may share one.
  void record(std::shared_ptr<Recording>);
  std::shared_ptr<Recording> recording();  // nullptr: none, or one that has ended
  void replay(std::shared_ptr<const Recording>);

  uint64_t tail();  // the place of the last work
  bool passed(uint64_t place);
  void wait(uint64_t place);
  Fault take_fault();  // the next fault of a kernel here, each once; the loss of the chip every time
  Chip& chip() const { return chip_; }

 private:
  friend void raise(Error, std::string);
  void push(Job job);
  void loop();
  void run(const Job& job);
  void obstruct();

  Chip& chip_;
  const uint32_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::deque<Fault> faults_;
  uint64_t tail_ = 0, done_ = 0;
  bool stop_ = false;
  std::shared_ptr<Recording> recording_;
  std::thread worker_;
};

struct Recording {
  std::mutex mutex;
  std::vector<Queue::Job> jobs;
  bool ended = false;  // nothing changes any more

  bool add(Queue::Job&);  // false: it has ended
  bool has_ended();
  void end();
};

// Called inside a kernel: reports an error in its data.
void raise(Error error, std::string text);
}  // namespace driver
