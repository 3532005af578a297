// Streams and events, and how work is enqueued on them.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver/contexts.hpp"
#include "driver/handles.hpp"
#include "driver/queue.hpp"

namespace emulator {
inline constexpr int lowest_priority = 0, highest_priority = -5;

class Capture;

// Work that failed: its context has failed for good.
struct Fault {
  CUresult result;
  std::string why;
};
using Work = std::function<void()>;  // throws Fault

// The position of a stream in a capture: the nodes that its next node must wait for.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;
};
}  // namespace emulator

struct CUstream_st {
  CUstream_st(std::shared_ptr<emulator::Life> l, unsigned f, int p) : life(std::move(l)), flags(f), priority(p) {}

  const std::shared_ptr<emulator::Life> life;
  const unsigned flags;
  const int priority;
  emulator::Queue queue;
  std::optional<emulator::CapturePoint> capturing;
};

struct CUevent_st {
  CUevent_st(std::shared_ptr<emulator::Life> l, unsigned f) : life(std::move(l)), flags(f) {}

  const std::shared_ptr<emulator::Life> life;
  const unsigned flags;
  std::shared_ptr<emulator::Marker> marker;        // of the last record outside of captures
  std::optional<emulator::CapturePoint> captured;  // of the last record, if that was in a capture
};

namespace emulator {
using Stream = std::shared_ptr<CUstream_st>;

// Protects captures and the parts of streams and events that refer to them.
std::mutex& streams_mutex();

Stream find_stream(CUstream);     // nullptr is the default stream of the current context
void submit(CUstream_st&, Work);  // with streams_mutex() locked: to the queue, or to the graph of a capture
std::vector<Stream> streams_of(Life&);
void end_streams(Life&);  // when all of their work is done
}  // namespace emulator
