// What a thread runs while it makes a capture: its memory, and what keeps it from being captured.
#pragma once
#include <string>
#include <vector>

#include "device/stream.hpp"

namespace dovetail {
// Memory that one capture has to itself for as long as it is kept, as its replays write there.
class CaptureMemory {
 public:
  CaptureMemory(Device& device, uint64_t most) : device(device), most_(most) {}
  ~CaptureMemory();  // nothing is enqueued that will write there, but on streams that used it
  CaptureMemory(const CaptureMemory&) = delete;

  Device& device;
  Storage* take(uint64_t bytes);           // what was given back; nullptr: nothing that large
  Storage* grow(Stream&, uint64_t bytes);  // nullptr: more than is allowed, or the device is full
  void give_back(Storage* s) noexcept;     // without holders
  Storage* number(size_t i, Stream&, uint64_t bytes, bool& is_new);  // the i-th number in it; never written again
  bool owns(const Storage& s) const { return s.owner == this; }
  void hold();        // until it is destroyed, also what is released meanwhile
  void use(Stream&);  // all of it, before work on the stream writes there
  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t most_;
  uint64_t bytes_ = 0;
  std::vector<Storage*> all_, numbers_;
  std::vector<Storage*> free_;
};

// While it exists, what this thread allocates on the device is the capture's. It runs twice: once for its results
// (rehearse), which shows what memory it takes and whether it can be captured at all, then to be recorded.
class Capturing {
 public:
  enum Step { rehearse, record };
  Capturing(CaptureMemory&, Stream& stream, Step);
  ~Capturing();
  Capturing(const Capturing&) = delete;

  // Hooks. What cannot be captured is noted in the rehearsal, which goes on, and thrown by what is recorded.
  Storage* allocate(Stream&, uint64_t bytes);
  Storage* number(Stream&, uint64_t bytes, bool& is_new);
  void meet_launch(const char* name, bool safe);
  void meet_copy(const void* to, bool with_host);
  void refuse(const std::string& why);
  bool is_on(const Device& device) const { return &memory_.device == &device; }
  bool owns(const Storage& s) const { return memory_.owns(s); }
  void give_back(Storage* s) noexcept { memory_.give_back(s); }

  bool records() const { return step_ == record; }
  size_t launches() const { return launches_; }
  const std::string& refusal() const { return refusal_; }  // empty: none

 private:
  CaptureMemory& memory_;
  const Step step_;
  ThreadCache* const cache_;  // of the thread, which it does without meanwhile
  Stream* const stream_;      // on which the thread's calls ran before
  size_t launches_ = 0, numbers_ = 0;
  const void* new_number_ = nullptr;
  std::string refusal_;
};
extern thread_local constinit Capturing* capturing __attribute__((tls_model("initial-exec")));
inline Capturing* capturing_on(const Device& device) {
  return capturing && capturing->is_on(device) ? capturing : nullptr;
}

// A stream of its own to record on, which nothing else runs on.
class RecordingStream {
 public:
  explicit RecordingStream(Device&);  // throws Error(not_implemented) where the device has no more streams
  ~RecordingStream();
  RecordingStream(const RecordingStream&) = delete;
  Stream& stream() { return *stream_; }

 private:
  void let_go();
  Device& device_;
  std::unique_ptr<Stream> stream_;
};

// Frees the captures of a device that are not in use, as memory is short. False: there were none.
extern bool (*release_captures)(Device&);  // nullptr: nothing is captured
}  // namespace dovetail
