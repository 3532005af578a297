// Streams and events, which are CUDA's own.
#include <algorithm>
#include <cmath>

#include "device/capture.hpp"
#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace {
CUstream create(int32_t priority) {
  int lowest = 0, highest = 0;  // numbers that are less come first
  GPU_CALL(cuCtxGetStreamPriorityRange(&lowest, &highest));
  CUstream stream = nullptr;
  GPU_CALL(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, std::clamp(priority, highest, lowest)));
  return stream;
}
}  // namespace

dvt_stream::dvt_stream(dvt_device& d, int32_t priority) : device(d), owned(true), handle(create(priority)) {}
dvt_stream::dvt_stream(dvt_device& d, CUstream borrowed) : device(d), owned(false), handle(borrowed) {}
dvt_stream::~dvt_stream() {
  if (owned) gpu::driver().cuStreamDestroy(handle);
}

namespace gpu {
dvt_status wait_for(dvt_stream& s) {
  GPU_CALL(cuStreamSynchronize(s.handle));
  return s.faults->report();
}

dvt_status stream_create(dvt_device* d, int32_t priority, dvt_stream** out) {
  return guarded(d, [&] {
    *out = new dvt_stream(*d, priority);
    return DVT_OK;
  });
}

// Its queued work may still write faults: it goes when that is done.
void stream_destroy(dvt_stream* s) {
  dvt_device& device = s->device;
  const dvt_status status = guarded(&device, [&] {
    abandon_capture(*s);
    device.deferred.after(end_of(s->handle), [s] { delete s; });
    device.deferred.sweep();
    return DVT_OK;
  });
  if (status == DVT_DEVICE_LOST) delete s;
}

dvt_status stream_sync(dvt_stream* s) {
  return guarded(&s->device, [&] {
    if (dvt_status status = refuse_in_capture(*s, "a wait for the stream")) return status;
    return wait_for(*s);
  });
}

dvt_status event_create(dvt_device* d, uint32_t timing, dvt_event** out) {
  return guarded(d, [&] {
    *out = new dvt_event(*d, timing != 0);
    return DVT_OK;
  });
}
void event_destroy(dvt_event* e) {
  dvt_device& device = e->device;
  if (guarded(&device, [&] { return delete e, DVT_OK; }) == DVT_DEVICE_LOST) delete e;
}

dvt_status event_record(dvt_event* e, dvt_stream* s) {
  return guarded(&s->device, [&] {
    const std::lock_guard guard(e->mutex);
    GPU_CALL(cuEventRecord(e->event.get(), s->handle));
    e->recorded = true, e->captured = capture_of(s->handle).has_value(), e->faults = s->faults;
    return DVT_OK;
  });
}

namespace {
struct Record {
  bool recorded, captured;
  std::shared_ptr<FaultList> faults;
};
Record newest(dvt_event* e) {
  const std::lock_guard guard(e->mutex);
  return {e->recorded, e->captured, e->faults};
}

}  // namespace

// Two waits would make CUDA's capture invalid and are refused before: for an event from outside the capture, and
// for one of a capture that has ended.
dvt_status event_wait(dvt_stream* s, dvt_event* e) {
  return guarded(&s->device, [&]() -> dvt_status {
    const Record record = newest(e);
    if (!record.recorded) return DVT_OK;
    if (!record.captured)
      if (dvt_status status = refuse_in_capture(*s, "a wait for an event from elsewhere")) return status;
    const CUresult result = driver().cuStreamWaitEvent(s->handle, e->event.get(), 0);
    if (result == CUDA_ERROR_INVALID_VALUE && record.captured) return refuse_captured(record.captured);
    check(result, "cuStreamWaitEvent");
    return DVT_OK;
  });
}

dvt_status event_sync(dvt_event* e) {
  return guarded(&e->device, [&]() -> dvt_status {
    const Record record = newest(e);
    if (!record.recorded) return DVT_OK;
    if (dvt_status status = refuse_captured(record.captured)) return status;
    GPU_CALL(cuEventSynchronize(e->event.get()));
    return record.faults->report();
  });
}

dvt_status event_query(dvt_event* e, uint32_t* done) {
  return guarded(&e->device, [&]() -> dvt_status {
    const Record record = newest(e);
    *done = 1;
    if (!record.recorded) return DVT_OK;
    if (dvt_status status = refuse_captured(record.captured)) return status;
    *done = e->event.passed();
    return *done ? record.faults->report() : DVT_OK;
  });
}

dvt_status event_elapsed(dvt_event* from, dvt_event* to, uint64_t* ns) {
  return guarded(&from->device, [&]() -> dvt_status {
    const Record first = newest(from), second = newest(to);
    if (dvt_status status = refuse_captured(first.captured)) return status;
    if (dvt_status status = refuse_captured(second.captured)) return status;
    if (!from->timing || !to->timing || !first.recorded || !second.recorded) return report_no_time();
    float milliseconds = 0;
    GPU_CALL(cuEventElapsedTime(&milliseconds, from->event.get(), to->event.get()));
    *ns = uint64_t(std::llround(std::max(milliseconds, 0.0f) * 1e6));
    return DVT_OK;
  });
}

namespace {
dvt_status stream_wrap(dvt_device* d, void* native, dvt_stream** out) {
  *out = new dvt_stream(*d, static_cast<CUstream>(native));
  return DVT_OK;
}
void* stream_native(dvt_stream* s) { return s->handle; }
}  // namespace

dvt_status host_fn(dvt_stream* s, void (*fn)(void*), void* ctx) {
  return guarded(&s->device, [&]() -> dvt_status {
    if (dvt_status status = refuse_in_capture(*s, "a function of the host")) return status;
    GPU_CALL(cuLaunchHostFunc(s->handle, fn, ctx));
    return DVT_OK;
  });
}
constinit const dvt_streams streams = [] {
  dvt_streams s = stream_functions(DVT_S_CROSS_DEVICE);
  s.wrap = stream_wrap, s.native = stream_native;
  return s;
}();
}  // namespace gpu
