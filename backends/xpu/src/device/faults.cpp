#include "device/faults.hpp"

#include <new>
#include <utility>

#include "gpu/errors.hpp"

namespace gpu {
namespace {
constexpr uint32_t rounds(uint8_t byte) { return byte * 0x01010101u; }
}  // namespace

Faults::Faults(const sycl::context& context, const sycl::device& device) : context_(context), device_(device) {}

Faults::~Faults() {
  if (on_device_) sycl::free(on_device_, context_);
  if (on_host_) sycl::free(on_host_, context_);
}

Fault* Faults::slot() {
  const std::lock_guard guard(mutex_);
  if (!on_device_) {
    sycl::queue queue(context_, device_);
    on_device_ = sycl::malloc_device<Fault>(1, queue);
    on_host_ = sycl::malloc_host<Fault>(1, queue);
    if (!on_device_ || !on_host_) throw std::bad_alloc();
    *on_host_ = {};
    queue.memset(on_device_, 0, sizeof(Fault)).wait();
  }
  written_ = true;
  return on_device_;
}

void Faults::publish(sycl::queue& queue) {
  if (written_.exchange(false)) queue.memcpy(on_host_, on_device_, sizeof(Fault));
}

void Faults::keep(dvt_status status, const char* what) {
  const std::lock_guard guard(mutex_);
  if (!error_) error_ = status, what_ = what;
}

bool Faults::has_error() {
  const std::lock_guard guard(mutex_);
  return error_;
}

dvt_status Faults::report(sycl::queue& queue) {
  const std::lock_guard guard(mutex_);
  if (error_) return DVT_FAIL_LATE(std::exchange(error_, DVT_OK), 0, "SYCL: %s", what_.c_str());
  if (!on_host_ || !on_host_->raised || on_host_->round != rounds(round_)) return DVT_OK;
  const Fault fault = *on_host_;
  queue.memset(on_device_, 0, sizeof(Fault));  // for the next one
  queue.memset(&on_device_->round, ++round_, sizeof(Fault::round));
  return report_bad_index(fault.call, fault.index, fault.axis, fault.size);
}

void Faults::forget_error() {
  const std::lock_guard guard(mutex_);
  error_ = DVT_OK;
}

void Faults::restart(sycl::queue& queue) {
  const std::lock_guard guard(mutex_);
  written_ = false, round_ = 0;
  if (!on_host_) return;
  *on_host_ = {};
  queue.memset(on_device_, 0, sizeof(Fault));
}
}  // namespace gpu
