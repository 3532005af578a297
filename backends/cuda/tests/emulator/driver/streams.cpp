#include "driver/streams.hpp"

#include "driver/capture.hpp"

namespace emulator {
namespace {
bool is_blocking(const CUstream_st& s) { return !(s.flags & CU_STREAM_NON_BLOCKING); }

Stream default_stream(const std::shared_ptr<Life>& life) {
  const std::lock_guard guard(life->mutex);
  if (!life->default_stream) {
    life->default_stream = Handles<CUstream_st>::instance().add(std::make_shared<CUstream_st>(life, 0, 0));
    life->streams.insert(life->default_stream);
  }
  return Handles<CUstream_st>::instance().find(life->default_stream);
}

// Work of `second` that is pushed from now on waits for the work of `first`.
void order(CUstream_st& first, CUstream_st& second) {
  if (first.queue.is_idle()) return;
  const auto marker = std::make_shared<Marker>();
  first.queue.push([marker] { marker->pass(); });
  second.queue.push([marker] { marker->wait(); });
}

// The default stream and all streams that are not CU_STREAM_NON_BLOCKING wait for each other.
void order_with_default(CUstream_st& stream) {
  if (!is_blocking(stream)) return;
  CUstream default_one;
  {
    const std::lock_guard guard(stream.life->mutex);
    default_one = stream.life->default_stream;
  }
  if (!default_one) return;
  if (default_one != &stream) return order(*default_one, stream);
  for (const Stream& other : streams_of(*stream.life))
    if (is_blocking(*other) && other.get() != &stream) order(*other, stream);
}

void run(Life& life, const Work& work) {
  if (life.error) return;
  try {
    work();
  } catch (const Fault& fault) {
    life.fail(fault.result, fault.why);
  }
}
}  // namespace

std::mutex& streams_mutex() {
  static std::mutex& one = *new std::mutex;
  return one;
}

Stream find_stream(CUstream handle) {
  if (handle == CU_STREAM_PER_THREAD) refuse(CUDA_ERROR_NOT_SUPPORTED, "streams of threads are not emulated");
  return !handle || handle == CU_STREAM_LEGACY ? default_stream(require_life())
                                               : Handles<CUstream_st>::instance().find(handle);
}

void submit(CUstream_st& stream, Work work) {
  if (stream.capturing) return stream.capturing->capture->add(stream, std::move(work));
  if (&stream == stream.life->default_stream) refuse_implicit_capture(*stream.life);
  order_with_default(stream);
  stream.queue.push([life = stream.life, work = std::move(work)] { run(*life, work); });
}

std::vector<Stream> streams_of(Life& life) {
  const std::lock_guard guard(life.mutex);
  std::vector<Stream> all;
  for (CUstream handle : life.streams) all.push_back(Handles<CUstream_st>::instance().find(handle));
  return all;
}

void end_streams(Life& life) {
  for (const Stream& stream : streams_of(life)) {
    stream->queue.wait();
    const std::lock_guard guard(streams_mutex());
    if (stream->capturing) stream->capturing->capture->abandon();
  }
  const auto of_life = [&](const auto& object) { return object.life.get() == &life; };
  Handles<CUstream_st>::instance().remove_if(of_life);
  Handles<CUevent_st>::instance().remove_if(of_life);
}
}  // namespace emulator

// ---- functions of cuda.h ----------------------------------------------------------------------------------------

using namespace emulator;

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return answer("cuStreamCreateWithPriority", Needs::context, [&] {
    if (flags & ~unsigned(CU_STREAM_NON_BLOCKING)) refuse(CUDA_ERROR_INVALID_VALUE, "unknown flags");
    const auto life = require_life();
    const auto stream =
        std::make_shared<CUstream_st>(life, flags, std::min(std::max(priority, highest_priority), lowest_priority));
    place_for(out) = Handles<CUstream_st>::instance().add(stream);
    const std::lock_guard guard(life->mutex);
    life->streams.insert(stream.get());
  });
}

// Its work is still done.
CUresult cuStreamDestroy(CUstream handle) {
  return answer("cuStreamDestroy", Needs::context, [&] {
    const Stream stream = Handles<CUstream_st>::instance().find(handle);
    {
      const std::lock_guard guard(streams_mutex());
      if (stream->capturing) stream->capturing->capture->abandon();
    }
    const std::lock_guard guard(stream->life->mutex);
    if (handle == stream->life->default_stream) refuse(CUDA_ERROR_INVALID_HANDLE, "the default stream stays");
    stream->life->streams.erase(handle);
    Handles<CUstream_st>::instance().remove(handle);
  });
}

namespace {
void refuse_if_capturing(CUstream_st& stream) {
  const std::lock_guard guard(streams_mutex());
  if (!stream.capturing) return;
  stream.capturing->capture->invalidate();
  refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is capturing");
}

// Errors that occurred in the meantime.
void refuse_if_failed(const Life& life) {
  if (const CUresult error = life.error) refuse(error, "the context has failed");
}
}  // namespace

CUresult cuStreamSynchronize(CUstream handle) {
  return answer("cuStreamSynchronize", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    refuse_if_capturing(*stream);
    stream->queue.wait();
    refuse_if_failed(*stream->life);
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return answer("cuStreamQuery", Needs::context, [&] {
    const Stream stream = find_stream(handle);
    refuse_if_capturing(*stream);
    const bool idle = stream->queue.is_idle();
    refuse_if_failed(*stream->life);
    if (!idle) refuse(CUDA_ERROR_NOT_READY, "the stream has work left");
  });
}

CUresult cuCtxSynchronize() {
  return answer("cuCtxSynchronize", Needs::context, [&] {
    const auto life = require_life();
    const std::vector<Stream> streams = streams_of(*life);
    for (const Stream& stream : streams) refuse_if_capturing(*stream);
    for (const Stream& stream : streams) stream->queue.wait();
    refuse_if_failed(*life);
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return answer("cuLaunchHostFunc", Needs::context, [&] {
    if (!function) refuse(CUDA_ERROR_INVALID_VALUE, "the function is null");
    const Stream stream = find_stream(handle);
    const std::lock_guard guard(streams_mutex());
    submit(*stream, [=] {
      const InHostFunction here;
      function(data);
    });
  });
}
