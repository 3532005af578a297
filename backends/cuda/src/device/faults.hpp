// Faults in the data of kernels, such as a bad index, on one stream or in one graph. Kernels write them into host
// memory, which is read after a wait.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "dovetail/backend.hpp"
#include "kernels/common/fault.hpp"

namespace gpu {
class Faults {
 public:
  Faults() = default;
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // The device's address where kernels may write a fault.
  Fault* slot();
  // Reports the fault that was found since the last report, if any. To be called after a wait.
  dvt_status report();

 private:
  std::mutex mutex_;
  Fault* slot_ = nullptr;  // allocated when first needed
};

// The faults of a stream and of the graphs that have run on it.
class FaultList {
 public:
  Fault* slot() { return own_.slot(); }
  void watch(std::shared_ptr<Faults>);
  dvt_status report();

 private:
  Faults own_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Faults>> watched_;
};
}  // namespace gpu
