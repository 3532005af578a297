#include "driver/capture.hpp"

#include <algorithm>
#include <utility>

namespace emulator {
namespace {
std::vector<std::weak_ptr<Capture>>& captures() {
  static auto& all = *new std::vector<std::weak_ptr<Capture>>;
  return all;
}
cuuint64_t last_id = 0;

void merge(std::vector<size_t>& into, const std::vector<size_t>& nodes) {
  into.insert(into.end(), nodes.begin(), nodes.end());
  std::ranges::sort(into);
  into.erase(std::ranges::unique(into).begin(), into.end());
}
}  // namespace

Capture::Capture(CUstream_st& origin, CUstreamCaptureMode mode) : id_(++last_id), mode_(mode), origin_(origin) {}

std::shared_ptr<Capture> Capture::begin(CUstream_st& origin, CUstreamCaptureMode mode) {
  const std::shared_ptr<Capture> capture(new Capture(origin, mode));
  capture->join(origin, {});
  std::erase_if(captures(), [](const auto& old) { return old.expired(); });
  captures().push_back(capture);
  return capture;
}

void Capture::check_valid() const {
  if (!valid_) refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was made invalid before");
}

void Capture::add(CUstream_st& stream, Work work) {
  check_valid();
  graph_->nodes.push_back({std::move(work), std::exchange(stream.capturing->nodes, {graph_->nodes.size()})});
}

void Capture::join(CUstream_st& stream, const std::vector<size_t>& nodes) {
  check_valid();
  streams_.insert(&stream);
  if (!stream.capturing) stream.capturing = CapturePoint{shared_from_this(), {}};
  merge(stream.capturing->nodes, nodes);
}

void Capture::abandon() {
  for (CUstream_st* stream : std::exchange(streams_, {})) stream->capturing.reset();
}

// Does the origin wait for all work that was forked from it?
bool Capture::is_joined() const {
  std::vector<bool> reached(graph_->nodes.size());
  std::vector<size_t> open = origin_.capturing->nodes;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    const auto& after = graph_->nodes[node].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return std::ranges::all_of(streams_, [&](const CUstream_st* stream) {
    return std::ranges::all_of(stream->capturing->nodes, [&](size_t node) { return reached[node]; });
  });
}

std::shared_ptr<CUgraph_st> Capture::end(const CUstream_st& stream) {
  if (&stream != &origin_) {
    invalidate();
    refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began on another stream");
  }
  if (mode_ != CU_STREAM_CAPTURE_MODE_RELAXED && thread_ != std::this_thread::get_id())
    refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began on another thread");
  const bool joined = is_joined();
  abandon();
  check_valid();
  if (!joined)
    refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream of the capture was not joined to its first one");
  return graph_;
}

bool Capture::forbids_unsafe() const {
  if (has_ended() || mode_ == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  return mode_ == CU_STREAM_CAPTURE_MODE_GLOBAL || thread_ == std::this_thread::get_id();
}

void join_capture(CUstream_st& stream, const CapturePoint& point) {
  if (!stream.capturing || stream.capturing->capture == point.capture) {
    if (point.capture->has_ended()) refuse(CUDA_ERROR_INVALID_VALUE, "the capture of this event has ended");
    return point.capture->join(stream, point.nodes);
  }
  stream.capturing->capture->invalidate();
  point.capture->invalidate();
  refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the event is of another capture");
}

void refuse_unsafe_in_capture() {
  const std::lock_guard guard(streams_mutex());
  bool forbidden = false;
  for (const auto& weak : captures())
    if (const auto capture = weak.lock(); capture && capture->forbids_unsafe()) {
      capture->invalidate();
      forbidden = true;
    }
  if (forbidden) refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a capture would not see this call");
}

void refuse_implicit_capture(Life& life) {
  for (const Stream& stream : streams_of(life))
    if (stream->capturing && !(stream->flags & CU_STREAM_NON_BLOCKING)) {
      stream->capturing->capture->invalidate();
      refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the default stream would wait for a stream that is capturing");
    }
}
}  // namespace emulator

// ---- functions of cuda.h ----------------------------------------------------------------------------------------

using namespace emulator;

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  return answer("cuStreamBeginCapture", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream.get() == stream->life->default_stream)
      refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the default stream cannot capture");
    if (stream->capturing) refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream is capturing");
    Capture::begin(*stream, mode);
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  return answer("cuStreamEndCapture", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    place_for(out) = nullptr;
    const std::lock_guard guard(streams_mutex());
    if (!stream->capturing) refuse(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
    const std::shared_ptr<Capture> capture = stream->capturing->capture;
    *out = Handles<CUgraph_st>::instance().add(capture->end(*stream));
  });
}

namespace {
CUstreamCaptureStatus status_of(const CUstream_st& stream) {
  if (!stream.capturing) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capturing->capture->is_valid() ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                               : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}
}  // namespace

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return answer("cuStreamIsCapturing", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream.get() == stream->life->default_stream) refuse_implicit_capture(*stream->life);
    place_for(status) = status_of(*stream);
  });
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* n) {
  return answer("cuStreamGetCaptureInfo", Needs::context, [&] {
    if (dependencies || edges || n) refuse(CUDA_ERROR_NOT_SUPPORTED, "nodes of captures have no handles here");
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream.get() == stream->life->default_stream) refuse_implicit_capture(*stream->life);
    place_for(status) = status_of(*stream);
    if (*status == CU_STREAM_CAPTURE_STATUS_NONE) return;
    if (id) *id = stream->capturing->capture->id();
    if (graph) *graph = stream->capturing->capture->graph();
  });
}
