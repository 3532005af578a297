// torch.profiler's events on our streams.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "runtime.hpp"

namespace dovetail_torch {
namespace {
dvr_event* event_of(const torch::profiler::impl::ProfilerVoidEventStub& e) {
  return static_cast<dvr_event*>(e.get());
}

struct Stubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event,
              int64_t* cpu_ns) const override {
    const c10::DeviceIndex i = current_device();
    if (device) *device = i;
    dvr_event* made = nullptr;
    check(dvr_event_new(device_at(i).handle, 1, &made));
    *event = {made, [](void* e) { dvr_event_free(static_cast<dvr_event*>(e)); }};
    if (cpu_ns) *cpu_ns = c10::getTime();
    check(dvr_event_record(made, nullptr));
  }
  // Microseconds.
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub* from,
                const torch::profiler::impl::ProfilerVoidEventStub* to) const override {
    uint64_t ns = 0;
    check(dvr_event_synchronize(event_of(*from)));
    check(dvr_event_synchronize(event_of(*to)));
    check(dvr_event_elapsed_ns(event_of(*from), event_of(*to), &ns));
    return float(double(ns) * 1e-3);
  }
  void synchronize() const override { check(dvr_synchronize(device_at(current_device()).handle)); }
  void onEachDevice(std::function<void(int)> action) const override {
    for (size_t i = 0; i < devices().size(); ++i) {
      const OnDevice on{c10::DeviceIndex(i)};
      action(int(i));
    }
  }
  bool enabled() const override { return true; }
  // Ranges are of a vendor's own tools.
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
};

[[maybe_unused]] const bool registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs);
  return true;
}();
}  // namespace
}  // namespace dovetail_torch
