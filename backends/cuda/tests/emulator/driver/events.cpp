#include <chrono>

#include "driver/capture.hpp"
#include "driver/streams.hpp"

using namespace emulator;

namespace {
using Event = std::shared_ptr<CUevent_st>;
Event find_event(CUevent handle) { return Handles<CUevent_st>::instance().find(handle); }

// The point that it waits for outside of captures; nullptr if it was never recorded.
std::shared_ptr<Marker> marker_of(CUevent_st& event) {
  const std::lock_guard guard(streams_mutex());
  if (event.captured) refuse(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture");
  return event.marker;
}

void wait_in_capture(CUstream_st& stream, const CUevent_st& event) {
  if (!event.captured) {
    stream.capturing->capture->invalidate();
    refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the event is from outside of the capture");
  }
  join_capture(stream, *event.captured);
}
}  // namespace

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  return answer("cuEventCreate", Needs::context, [&] {
    if (flags & ~unsigned(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
      refuse(CUDA_ERROR_INVALID_VALUE, "flags that are not emulated");
    place_for(out) = Handles<CUevent_st>::instance().add(std::make_shared<CUevent_st>(require_life(), flags));
  });
}

CUresult cuEventDestroy(CUevent handle) {
  return answer("cuEventDestroy", Needs::context, [&] { Handles<CUevent_st>::instance().remove(handle); });
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  return answer("cuEventRecord", Needs::context, [&] {
    const Event event = find_event(handle);
    const Stream stream = find_stream(stream_handle);
    if (event->life != stream->life) refuse(CUDA_ERROR_INVALID_HANDLE, "the event is of another context");
    const std::lock_guard guard(streams_mutex());
    event->captured = stream->capturing;
    if (stream->capturing) return stream->capturing->capture->check_valid();
    event->marker = std::make_shared<Marker>();
    // Passed even if the context has failed: no thread may wait for ever.
    submit(*stream, [] {});
    stream->queue.push([marker = event->marker] { marker->pass(); });
  });
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
  return answer("cuStreamWaitEvent", Needs::context, [&] {
    if (flags) refuse(CUDA_ERROR_INVALID_VALUE, "flags that are not emulated");
    const Stream stream = find_stream(stream_handle);
    const Event event = find_event(handle);
    const std::lock_guard guard(streams_mutex());
    if (stream->capturing || event->captured) return wait_in_capture(*stream, *event);
    if (!event->marker || event->marker->passed()) return;
    submit(*stream, [marker = event->marker] { marker->wait(); });
  });
}

CUresult cuEventQuery(CUevent handle) {
  return answer("cuEventQuery", Needs::context, [&] {
    refuse_unsafe_in_capture();
    const Event event = find_event(handle);
    const auto marker = marker_of(*event);
    if (marker && !marker->passed()) refuse(CUDA_ERROR_NOT_READY, "the event is not reached");
    if (const CUresult error = event->life->error) refuse(error, "the context has failed");
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return answer("cuEventSynchronize", Needs::context, [&] {
    refuse_unsafe_in_capture();
    const Event event = find_event(handle);
    if (const auto marker = marker_of(*event)) marker->wait();
    if (const CUresult error = event->life->error) refuse(error, "the context has failed");
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return answer("cuEventElapsedTime", Needs::context, [&] {
    std::shared_ptr<Marker> markers[2];
    for (int i = 0; i < 2; ++i) {
      const Event event = find_event(i ? end : start);
      markers[i] = marker_of(*event);
      if (event->flags & CU_EVENT_DISABLE_TIMING || !markers[i])
        refuse(CUDA_ERROR_INVALID_HANDLE, "an event without time, or never recorded");
    }
    if (!markers[0]->passed() || !markers[1]->passed()) refuse(CUDA_ERROR_NOT_READY, "an event is not reached");
    place_for(milliseconds) =
        std::chrono::duration<float, std::milli>(markers[1]->time() - markers[0]->time()).count();
  });
}
