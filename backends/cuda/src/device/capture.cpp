#include "device/capture.hpp"

#include <cstring>

#include "device/errors.hpp"
#include "gpu/functions.hpp"
#include "groups/compiler.hpp"

struct dvt_graph {
  dvt_device& device;
  CUgraphExec exec;
  std::shared_ptr<gpu::Faults> faults;
};

namespace gpu {
std::optional<cuuint64_t> capture_of(CUstream stream) {
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  GPU_CALL(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? std::nullopt : std::optional(id);
}

dvt_status refuse_in_capture(const dvt_stream& s, const char* what) {
  if (!capture_of(s.handle)) return DVT_OK;
  return report_uncapturable(what);
}

namespace {
dvt_status begin(dvt_stream* s) {
  return guarded(&s->device, [&]() -> dvt_status {
    if (dvt_status status = refuse_in_capture(*s, "the begin of another capture")) return status;
    // Relaxed: what other threads do with the device meanwhile is no concern of the capture's.
    GPU_CALL(cuStreamBeginCapture(s->handle, CU_STREAM_CAPTURE_MODE_RELAXED));
    s->device.recordings.begin(capture_of(s->handle).value());
    return DVT_OK;
  });
}

struct Ended {
  CUgraph graph = nullptr;
  Recording recording;

  explicit Ended(dvt_stream& s) {
    if (const auto id = capture_of(s.handle)) recording = s.device.recordings.end(*id);
    const CUresult result = driver().cuStreamEndCapture(s.handle, &graph);
    for (const auto& action : recording.at_end) action();
    check(result, "cuStreamEndCapture");
  }
  ~Ended() {
    if (graph) driver().cuGraphDestroy(graph);
  }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
};

dvt_status end(dvt_stream* s, dvt_graph** out) {
  return guarded(&s->device, [&]() -> dvt_status {
    if (!capture_of(s->handle)) return report_no_capture();
    const Ended ended(*s);
    if (!out) return DVT_OK;
    auto graph = std::make_unique<dvt_graph>(s->device, nullptr, ended.recording.faults);
    GPU_CALL(cuGraphInstantiate(&graph->exec, ended.graph, 0));
    *out = graph.release();
    return DVT_OK;
  });
}

dvt_status replay(dvt_graph* g, dvt_stream* s) {
  return guarded(&g->device, [&]() -> dvt_status {
    dvt_stream& stream = stream_of(&g->device, s);
    if (dvt_status status = refuse_in_capture(stream, "a replay")) return status;
    stream.faults->watch(g->faults);
    GPU_CALL(cuGraphLaunch(g->exec, stream.handle));
    return s ? DVT_OK : wait_for(stream);
  });
}

// Queued replays still complete: CUDA destroys the graph when they have.
void destroy(dvt_graph* g) {
  (void)guarded(&g->device, [&] {
    GPU_CALL(cuGraphExecDestroy(g->exec));
    return DVT_OK;
  });
  delete g;
}

}  // namespace

const dvt_capture captures = {
    .struct_size = sizeof captures, .flags = 0, .begin = begin, .end = end, .replay = replay, .destroy = destroy};

void abandon_capture(dvt_stream& s) {
  if (capture_of(s.handle)) const Ended ended(s);
}

const void* extension(const char* name, uint32_t version) {
  if (!std::strcmp(name, "dovetail.capture") && version == DVT_X_CAPTURE) return &captures;
  if (!std::strcmp(name, "dovetail.compiler") && version == DVT_X_COMPILER) return &compiler;
  if (!std::strcmp(name, "dovetail.collectives") && version == DVT_X_COLLECTIVES) return &nccl::collectives;
  return nullptr;
}
}  // namespace gpu
