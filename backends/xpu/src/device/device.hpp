// A device, its streams and events, as the rest of the backend sees them.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <sycl/sycl.hpp>

#include "device/deferred.hpp"
#include "device/faults.hpp"
#include "device/memory.hpp"
#include "device/staging.hpp"
#include "dovetail/backend.hpp"
#include "modules.hpp"
#include "onednn.hpp"

// Work on a device in the order of the calls: a stream of the host, or the device's own for calls without one.
struct dvt_stream {
  dvt_stream(dvt_device&, int32_t priority);
  dvt_stream(const dvt_stream&) = delete;
  dvt_stream& operator=(const dvt_stream&) = delete;

  dvt_device& device;
  xpu::Faults faults;
  sycl::queue queue;  // in order
  xpu::onednn::Stream onednn;
};

struct dvt_device {
  dvt_device(uint32_t index, const sycl::device&);

  const uint32_t index;
  const sycl::device device;
  const sycl::context context;
  const bool has_fp64;
  std::atomic<bool> lost = false;
  xpu::LoadedKernels kernels;
  xpu::Deferred deferred;
  xpu::Memory memory;
  xpu::Staging staging;
  xpu::onednn::Engine onednn;
  dvt_stream own_stream;
};

struct dvt_event {
  const bool timing;
  std::mutex mutex;
  std::optional<sycl::event> record;  // nothing: never recorded
  dvt_stream* stream = nullptr;       // on which it was recorded last
};

namespace xpu {
inline dvt_stream& stream_of(dvt_device* d, dvt_stream* s) { return s ? *s : d->own_stream; }
inline bool passed(const sycl::event& event) {
  return event.get_info<sycl::info::event::command_execution_status>() ==
         sycl::info::event_command_status::complete;
}
}  // namespace xpu
