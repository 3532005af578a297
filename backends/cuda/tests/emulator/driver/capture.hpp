// Work that streams record into a graph instead of running it, with the order given by them and their events.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "driver/streams.hpp"

struct CUgraph_st {
  struct Node {
    emulator::Work work;
    std::vector<size_t> after;  // nodes before it
  };
  std::vector<Node> nodes;
};

namespace emulator {
// All of it with streams_mutex() locked.
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  static std::shared_ptr<Capture> begin(CUstream_st& origin, CUstreamCaptureMode);

  // Throws Refusal if the capture is no longer valid.
  void check_valid() const;
  void add(CUstream_st&, Work);
  void join(CUstream_st&, const std::vector<size_t>& nodes);
  void leave(CUstream_st&);
  void invalidate() { valid_ = false; }
  // Ends it, for all of its streams, without a graph.
  void abandon();
  // Throws Refusal if it was invalid; it has ended whenever `stream` could end it.
  std::shared_ptr<CUgraph_st> end(const CUstream_st& stream);

  cuuint64_t id() const { return id_; }
  bool is_valid() const { return valid_; }
  bool has_ended() const { return streams_.empty(); }
  CUgraph graph() const { return graph_.get(); }
  // Whether this thread must not make calls that captures cannot see.
  bool forbids_unsafe() const;

 private:
  Capture(CUstream_st& origin, CUstreamCaptureMode);
  bool is_joined() const;

  const cuuint64_t id_;
  const CUstreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  CUstream_st& origin_;
  std::set<CUstream_st*> streams_;
  const std::shared_ptr<CUgraph_st> graph_ = std::make_shared<CUgraph_st>();
  bool valid_ = true;
};

// A stream waits for a point of a capture, and becomes part of that.
void join_capture(CUstream_st&, const CapturePoint&);

// Without streams_mutex(). Refuses a call that a capture would not see, if one forbids it, and invalidates
// the capture.
void refuse_unsafe_in_capture();
// With streams_mutex() locked. The default stream would wait for streams that are capturing.
void refuse_implicit_capture(Life&);
}  // namespace emulator
