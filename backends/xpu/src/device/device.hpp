// A device, its streams and events, as the rest of the backend sees them.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <sycl/sycl.hpp>
#include <unordered_set>
#include <vector>

#include "device/capture.hpp"
#include "device/faults.hpp"
#include "device/memory.hpp"
#include "dovetail/backend.hpp"
#include "gpu/deferred.hpp"
#include "gpu/staging.hpp"
#include "modules.hpp"
#include "onednn.hpp"

namespace gpu {
// A place in a stream.
struct Event {
  sycl::event handle;

  bool passed() const;
  void wait() const;
};

struct PinnedMemory {
  sycl::context context;

  void* allocate(size_t bytes) const {  // throws std::bad_alloc
    if (void* const buffer = sycl::malloc_host(bytes, context)) return buffer;
    throw std::bad_alloc();
  }
  void release(void* buffer) const { sycl::free(buffer, context); }
};

// The streams of one device.
class Streams {
 public:
  void add(dvt_stream*);
  void remove(dvt_stream*);
  void gather_errors();  // SYCL's asynchronous ones, into each one's faults
  void renew();          // each of them

 private:
  std::mutex mutex_;
  std::unordered_set<dvt_stream*> all_;
};
}  // namespace gpu

// Work on a device in the order of the calls: a stream of the host, or the device's own for calls without one.
struct dvt_stream {
  dvt_stream(dvt_device&, int32_t priority);
  ~dvt_stream();
  dvt_stream(const dvt_stream&) = delete;
  dvt_stream& operator=(const dvt_stream&) = delete;

  // A new queue, with nothing queued. SYCL refuses whatever is queued behind work that has failed.
  void renew();
  // Renews the queue after an error was reported, and ignores the errors that it caused.
  void mend() {
    if (!failed.load(std::memory_order_relaxed) || !failed.exchange(false)) return;
    renew();
    faults.forget_error();
  }
  // After a call: waits where too many are queued on the CPU device.
  void limit_backlog();

  dvt_device& device;
  const int32_t priority;
  gpu::Faults faults;
  sycl::queue queue;                  // in order
  std::atomic<uint32_t> renewed = 0;  // times
  std::atomic<bool> failed = false;
  std::optional<gpu::onednn::Stream> onednn{std::in_place};
  std::shared_ptr<gpu::Capture> capture;  // into which its work goes instead; nothing: none

 private:
  sycl::queue new_queue();

  uint32_t calls_ = 0;               // on the CPU device
  std::optional<sycl::event> mark_;  // where the queue stood some calls ago
};

struct dvt_device {
  dvt_device(uint32_t index, const sycl::device&);

  const uint32_t index;
  const sycl::device device;
  const sycl::context context;
  const bool has_fp64, is_cpu;
  std::atomic<bool> lost = false;
  gpu::LoadedKernels kernels;
  gpu::Deferred<gpu::Event> deferred;
  gpu::Memory memory;
  gpu::Staging<gpu::PinnedMemory> staging;
  gpu::onednn::Engine onednn;
  gpu::Streams streams;
  dvt_stream own_stream;
};

struct dvt_event {
  const bool timing;
  std::mutex mutex;
  std::optional<sycl::event> record;        // nothing: never recorded
  dvt_stream* stream = nullptr;             // on which it was recorded last
  uint32_t renewed = 0;                     // the stream's, by then
  std::shared_ptr<gpu::Capture> capture{};  // that the record is part of
};

namespace gpu {
const std::vector<sycl::device>& devices();

inline dvt_stream& stream_of(dvt_device* d, dvt_stream* s) {
  dvt_stream& stream = s ? *s : d->own_stream;
  stream.mend();
  return stream;
}
// Waits for all that is queued, and reports once to the host what went wrong with it.
dvt_status wait_for(dvt_stream&);
// Passed as soon as what is queued now is done; at once on a lost device, which does nothing more.
Event end_of(dvt_stream&);

// The function of abi.h.
dvt_status device_reset(dvt_device*);
}  // namespace gpu
