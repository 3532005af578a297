// The accelerator itself, in software. A real backend has its vendor's library in the place of driver.* and
// settings.*: chips with memory of their own, queues of work, a clock. Nothing here knows of Dovetail; what an
// author of a backend writes is device.cpp and kernels/.
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

// What the environment sets; README.md lists it.
struct Settings {
  uint32_t chips = 2;
  uint64_t memory = uint64_t{256} << 20;  // bytes of each chip
  Duration latency{0};                    // before each kernel and copy
  double bandwidth = 0;                   // of copies, in bytes per nanosecond; 0: what the host's memory gives

  struct Fault {
    enum Kind { oom, lost, delay, hold } kind;
    uint32_t chip = 0;
    uint64_t first = 0, times = UINT64_MAX;  // oom, lost: counted from 1
    std::optional<uint32_t> queue;           // delay, hold; none: every queue
    Duration time{0};                        // delay
    std::string file;                        // hold
  };
  std::vector<Fault> faults;
  std::string error;  // not empty: the environment says something that is not understood
};
const Settings& settings();  // read once

// The memory of a chip, mapped twice: at the chip's own addresses nothing can be read or written, so that a host
// that follows one stops there; the queues' workers see the same memory at other addresses.
class Memory {
 public:
  static constexpr uint64_t alignment = 256;
  explicit Memory(uint64_t bytes);
  void* allocate(uint64_t bytes);  // a chip's address; nullptr where no gap is large enough
  void release(void* address);
  // Where workers find what has this address; nullptr where it is not of this memory.
  char* at(const void* address) const;
  void spoil();  // everything that it holds
  uint64_t size() const { return size_; }
  uint64_t free() const;

 private:
  const uint64_t size_;
  char *device_ = nullptr, *worker_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> gaps_, used_;  // offset to bytes
};

// Memory of the host that chips copy from and to while the host goes on.
void* allocate_pinned(uint64_t bytes);
void release_pinned(void* address);
bool is_pinned(const void* address);

enum class Error { none, bad_index, lost };
struct Fault {
  Error error = Error::none;
  uint64_t call = 0;  // who caused it, as given to Queue::kernel
  std::string text;
};

struct Chip {
  explicit Chip(uint32_t index) : index(index), memory(settings().memory) {}
  const uint32_t index;
  Memory memory;

  void* allocate(uint64_t bytes);  // as Memory::allocate; here faults are injected
  // Once lost, a chip does nothing more until it is reset.
  bool is_lost() const { return lost_; }
  Fault loss();
  bool loses_itself(uint64_t call);  // asked before each kernel
  void reset();

 private:
  std::atomic<uint64_t> allocations_{0}, kernels_{0};
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  Fault loss_;
};

// Work in the order in which it came, on a thread of its own. Nothing here waits but wait(), the destructor, and
// kernel() and copy() where so many are queued already: a host that is quicker than its device falls in step.
class Queue {
 public:
  static constexpr size_t most_queued = 1024;
  using Work = std::function<void()>;
  Queue(Chip& chip, uint32_t number);
  ~Queue();  // what is queued still runs

  void kernel(uint64_t call, Work work);
  void copy(char* to, const char* from, uint64_t bytes);
  void then(Work work);                      // no time passes for it, and a lost chip does it too
  void after(Queue& other, uint64_t place);  // nothing behind this starts before `other` has come to `place`

  uint64_t tail();  // the place of what was enqueued last
  bool passed(uint64_t place);
  void wait(uint64_t place);
  Fault take_fault();  // the next that kernels here raised, once each; the loss of the chip, always
  Chip& chip() const { return chip_; }

 private:
  friend void raise(Error, std::string);
  struct Job {
    enum Kind { kernel, copy, other } kind;
    uint64_t call, bytes;
    Work work;
  };
  void push(Job job);
  void loop();
  void run(Job& job);
  void obstruct();

  Chip& chip_;
  const uint32_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::deque<Fault> faults_;
  uint64_t tail_ = 0, done_ = 0;
  bool stop_ = false;
  std::thread worker_;
};

// Inside a kernel: something is wrong with its data.
void raise(Error error, std::string text);
}  // namespace driver
