// Queues of work, points in them to wait for, and the order in which buffers are used.
#pragma once
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>

#include "device/backend.hpp"
#include "device/interpreter.hpp"

namespace dovetail {
// A point in a stream's queue: an event that was recorded once. On a device without streams it has always passed.
class RecordedEvent {
 public:
  RecordedEvent(Stream& stream, dvt_event* event, uint64_t position, bool timing);
  ~RecordedEvent();  // the event is recorded again elsewhere
  RecordedEvent(const RecordedEvent&) = delete;
  // All keep a fault that the device found for Stream::throw_fault(), and wait without the GIL.
  void synchronize() const;  // throws nothing
  void wait() const;         // ends with an exception where the user interrupts the program (Ctrl-C)
  bool passed() const;
  bool wait_until(std::chrono::steady_clock::time_point) const;  // false: it has not passed by then

  Stream& stream;
  dvt_event* const event;   // nullptr on a device without streams
  const uint64_t position;  // Stream::position() when it was made
  const bool timing;
  const uint64_t host_ns;  // when it was made, on the host's clock

 private:
  using Clock = std::chrono::steady_clock;
  enum class Progress { pending, passed, unknown /* the device answers with one fault after another */ };
  bool is_past() const;  // without asking the device
  Progress look() const;
  // Calls `check`, which may throw, every 100 ms. False: the event is still pending at `until`.
  bool poll(Clock::time_point until, InterruptCheck*) const;
};
using RecordedEventPtr = std::shared_ptr<const RecordedEvent>;

// "[take]": whose call it was that Stream::correlate() gave this id.
std::string caller_of(uint64_t correlation_id);

// An in-order queue of one device. On a device without streams there is one, whose handle is NULL and whose work is
// done when run returns. Streams live as long as the process; a released user stream is handed out again.
class Stream {
 public:
  Stream(Device& device, dvt_stream* handle, int priority = 0)
      : device(device), handle(handle), priority(priority) {}
  Device& device;
  dvt_stream* const handle;
  const int priority;
  int users = 0;  // streams of the user that this one serves; guarded by Queues::mutex

  // Waits for all work, without the GIL; throws a fault that the device found meanwhile, naming the op.
  void synchronize();
  // The same in limited time, and without faults: false where work is left.
  bool drain(std::chrono::steady_clock::time_point until);
  // Whether all work is done; does not wait.
  bool idle();
  // "Calls on one stream never overlap": held during run, copy and ev_*, taken after use() of the operands. Waits
  // for the lock without the GIL. Throws if the device cannot be used any more.
  [[nodiscard]] std::unique_lock<std::mutex> lock() {
    device.check_usable();
    return handle ? lock_queue() : std::unique_lock<std::mutex>();
  }
  // With the lock held: a correlation id for a call of `op`, so that a later fault can name it. The name lives as
  // long as the process.
  uint64_t correlate(const char* op);
  // Work enqueued on this stream from now on runs after what is now enqueued on `other`, or after `point`.
  void wait_for(Stream& other);
  void wait_for(const RecordedEvent& point);
  // The end of the queue as it is now. Without timing, the event is shared as long as nothing is enqueued.
  RecordedEventPtr record(bool timing = false);
  // With the lock held: a timing event, at the beginning of what the lock was taken for or at its end.
  RecordedEventPtr record_timing(bool at_beginning) { return record_locked(true, at_beginning); }

  // How often something may have been enqueued; work up to a position that has passed is done.
  uint64_t position() const { return position_.load(std::memory_order_acquire); }
  bool has_passed(uint64_t position) const {
    return !handle || passed_.load(std::memory_order_acquire) >= position;
  }
  void set_passed(uint64_t position);
  // Looks whether the queue has come as far as `position`, without waiting.
  void poll(uint64_t position);

  void keep_fault(std::exception_ptr fault);  // for the next wait; later ones are logged only
  void throw_fault();
  void forget_fault();  // logs it

 private:
  friend void close_queues(Device&);
  friend void queues_after_fork(Device&, bool in_child);
  std::unique_lock<std::mutex> lock_queue();
  RecordedEventPtr record_locked(bool timing, bool at_beginning = false);

  std::mutex mutex_;
  std::atomic<uint64_t> position_{0}, passed_{0};
  uint64_t calls_ = 0;
  RecordedEventPtr tail_;  // recorded lazily
  std::mutex fault_mutex_;
  std::exception_ptr fault_;
};

// A point in a stream that the user names. With timing it also knows when the device came past it.
class Event {
 public:
  explicit Event(Device& device, bool timing = false) : device_(device), timing_(timing) {}
  void record(Stream& stream);  // again: the new point replaces the old one
  void wait(Stream& stream);  // work enqueued on `stream` from now on runs after the event; never recorded: at once
  void synchronize();         // the host waits, without the GIL; throws a fault that was found on the stream
  bool query();               // never recorded: true
  // Nanoseconds of device time between two recorded timing events that have passed. Throws Error(value) otherwise.
  static uint64_t elapsed_ns(Event& from, Event& to);
  Device& device() const { return device_; }

 private:
  RecordedEventPtr recorded();
  Device& device_;
  const bool timing_;
  std::mutex mutex_;
  RecordedEventPtr recorded_;
};

// ---- the stream on which this thread's calls run: the device's default one unless set ---------------------------

extern thread_local constinit Stream* current_streams[kMaxDevices] __attribute__((tls_model("initial-exec")));
inline Stream& current_stream(Device& device) {
  Stream* set = current_streams[device.index];
  return set ? *set : *device.default_stream;
}
void set_current_stream(Device&, Stream*);  // nullptr: the default one

// ---- stream-aware use of buffers; no-ops on the fast path where everything happens on one stream ----------------

// Before a kernel on `stream` reads (writes) `s`: waits on the tails of the streams that wrote (used) it, and
// remembers. Call it before stream.lock().
void use_slow(Storage& s, Stream& stream, bool write);
inline void use(Storage& s, Stream& stream, bool write) {
  if (s.stream != &stream || s.uses.load(std::memory_order_relaxed)) [[unlikely]]
    use_slow(s, stream, write);
}
// Before the host reads or writes the memory itself: waits, without the GIL, for the streams that wrote (used) it.
void host_access(Storage& s, bool write);
}  // namespace dovetail
