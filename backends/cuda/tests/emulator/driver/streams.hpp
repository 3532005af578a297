// Streams and events, and how work gets into them.
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

// Work that went wrong: its context has failed for good.
struct Fault {
  CUresult result;
  std::string why;
};
using Work = std::function<void()>;  // throws Fault

// Where a stream of a capture stands: the nodes that whatever comes next must wait for.
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
  std::optional<emulator::CapturePoint> captured;  // of the last record, if that was in one
};

namespace emulator {
using Stream = std::shared_ptr<CUstream_st>;

// Of captures and of what streams and events know of them: held by every function that deals with these.
std::mutex& streams_mutex();

Stream find_stream(CUstream);     // nullptr is the default stream of the current context
void submit(CUstream_st&, Work);  // with streams_mutex() held: to the queue, or to the graph of a capture
std::vector<Stream> streams_of(Life&);
void end_streams(Life&);  // when all of their work is done
}  // namespace emulator
