// The records of dovetail.profile: ops, kernels, copies and memory, with the device's times where it measures them.
// Off, a hook costs one predictable branch. All times are nanoseconds of the host's monotonic clock.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/guard.hpp"
#include "device/stream.hpp"

namespace dovetail {
enum class Activity : uint8_t { op, copy_call, kernel, copy, memory, traced };

struct Record {
  Activity activity;
  bool device_time = false;  // begin and end were measured by the device
  bool unfinished = false;   // the device had not come to its end when the recording ended
  const char* name = nullptr;
  const char* detail = nullptr;  // a kernel's engine; of an op file:line of its node; of `traced` the plugin's name
  Device* device = nullptr;      // nullptr: of the host, or of `traced` not known
  Stream* stream = nullptr;
  uint64_t begin = 0, end = 0;
  uint64_t enqueued = 0;  // when the host came to it
  int64_t bytes = 0;      // of a copy; of `memory` taken, or returned where it is negative
  uint64_t value = 0;     // the correlation id; of `memory` the bytes in use
};

struct ThreadRecords {
  uint64_t thread = 0;  // the system's number
  uint64_t dropped = 0;
  std::vector<Record> records;  // in the order in which they ended
};

enum class DeviceClock : uint8_t {
  run,     // a call is done when it returns: the host's clock measures it
  events,  // timing events of its streams
  host,    // it has streams and measures no time: the host's clock measures how long it takes to enqueue
};

struct DeviceTimes {
  Device* device;
  DeviceClock clock;
  uint64_t uncertainty_ns;  // by how much its times may be shifted against the host's
};

struct Recording {
  uint64_t begin = 0, end = 0;
  std::vector<DeviceTimes> devices;
  std::vector<ThreadRecords> threads;
};

inline bool recording() { return enabled(recorded); }
uint64_t recording_number();  // another one for each recording of the process
uint64_t host_clock();
// Starts to record, at most `limit` records per thread: those that come later are counted. Waits for the work on
// the devices' default streams. Throws Error(runtime) where a recording is under way.
void begin_recording(uint64_t limit);
// Waits for all devices that are part of the recording, without the GIL; throws where the user interrupts the wait.
void await_recording();
// The same for a limited time. False: work is left.
bool await_recording(std::chrono::steady_clock::time_point until);
// Stops. What the devices have not finished has the host's times. Empty where nothing was recorded.
Recording end_recording();

// Hooks.
void record_memory(Device&, int64_t bytes, int64_t in_use);  // with the pool's mutex held
void record_traced(const std::string& plugin, uint64_t correlation_id, const std::string& name, uint64_t begin,
                   uint64_t end);
void record_device(Device&);  // it was opened
void recording_after_fork();  // in the child, which records nothing

// A copy of the text that lives for ever, the same one for equal texts.
const char* lasting(const std::string& text);

// The host's time of a scope. `name` and `detail` live for ever.
class HostSpan {
 public:
  HostSpan(Activity activity, const char* name, const char* detail = nullptr)
      : activity_(activity), name_(name), detail_(detail), begin_(host_clock()) {}
  ~HostSpan();
  HostSpan(const HostSpan&) = delete;

 private:
  const Activity activity_;
  const char* const name_;
  const char* const detail_;
  const uint64_t begin_;
};

// Runs f() as the op `name`, of a node of the user's code at `where`.
template <class F>
[[gnu::noinline, gnu::cold]] void run_recorded(const char* name, F& f, const std::string& where = {}) {
  const HostSpan span(Activity::op, name, where.empty() ? nullptr : lasting(where));
  f();
}

// The device's time of one piece of work. With the stream's lock held.
class DeviceSpan {
 public:
  DeviceSpan(Activity, const char* name, const char* detail, Stream&, uint64_t correlation_id, int64_t bytes);
  ~DeviceSpan();
  DeviceSpan(const DeviceSpan&) = delete;

 private:
  Stream& stream_;
  Record record_;
  RecordedEventPtr begin_;
  const DeviceSpan* const around_;
};

// "copy sim:0 to host" of `bytes` bytes; lives for ever.
const char* copy_name(const Device&, const DLTensor& dst, const DLTensor& src);
}  // namespace dovetail
