// A device, its streams and events, as the rest of the backend sees them.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "cublaslt/engine.hpp"
#include "cudnn/engine.hpp"
#include "device/context.hpp"
#include "device/event.hpp"
#include "device/faults.hpp"
#include "device/peers.hpp"
#include "device/recordings.hpp"
#include "dovetail/backend.hpp"
#include "gpu/deferred.hpp"
#include "gpu/staging.hpp"

namespace gpu {
struct PinnedMemory {
  void* allocate(size_t bytes) const {
    void* buffer = nullptr;
    GPU_CALL(cuMemHostAlloc(&buffer, bytes, CU_MEMHOSTALLOC_PORTABLE));
    return buffer;
  }
  void release(void* buffer) const { driver().cuMemFreeHost(buffer); }
};
}  // namespace gpu

// Work on a device in the order of the calls: a stream of the host, or the device's own for calls without one.
struct dvt_stream {
  dvt_stream(dvt_device&, int32_t priority);
  dvt_stream(dvt_device&, CUstream borrowed);
  ~dvt_stream();
  dvt_stream(const dvt_stream&) = delete;
  dvt_stream& operator=(const dvt_stream&) = delete;

  dvt_device& device;
  const bool owned;
  const CUstream handle;
  const std::shared_ptr<gpu::FaultList> faults = std::make_shared<gpu::FaultList>();
};

struct dvt_device {
  // With the context current, as it must be at the end.
  dvt_device(uint32_t index, std::unique_ptr<const gpu::Context>);

  const uint32_t index;
  const std::unique_ptr<const gpu::Context> owned_context;
  const gpu::Context& context = *owned_context;
  const int capability;  // 90: compute capability 9.0
  const int multiprocessors;
  const bool has_pools;  // stream-ordered allocation
  std::atomic<bool> lost = false;
  gpu::Deferred<gpu::Event> deferred;
  gpu::Staging<gpu::PinnedMemory> staging;
  gpu::Peers peers{context};
  gpu::Recordings recordings;
  gpu::cublaslt::Engine cublaslt{capability};
  gpu::cudnn::Engine cudnn;
  dvt_stream own_stream;
};

struct dvt_event {
  explicit dvt_event(dvt_device& d, bool with_time)
      : device(d), timing(with_time), event(CU_EVENT_BLOCKING_SYNC | (with_time ? 0 : CU_EVENT_DISABLE_TIMING)) {}

  dvt_device& device;
  const bool timing;
  gpu::Event event;
  std::mutex mutex;
  bool recorded = false, captured = false;
  std::shared_ptr<gpu::FaultList> faults;  // of the stream on which it was recorded last
};

namespace gpu {
inline dvt_stream& stream_of(dvt_device* d, dvt_stream* s) { return s ? *s : d->own_stream; }
int attribute(CUdevice, CUdevice_attribute);
CUdevice device_at(uint32_t index);
// Waits for all that is queued, and reports once to the host what went wrong with it.
dvt_status wait_for(dvt_stream&);
}  // namespace gpu
