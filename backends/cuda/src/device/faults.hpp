// What kernels find wrong with their data, on one stream or in one graph: they write it into host memory, where it
// is read after a wait.
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

  // Where kernels may write a fault: the device's address.
  Fault* slot();
  // What was found and not told yet: once, through host->fail. To be called after a wait.
  dvt_status tell();

 private:
  std::mutex mutex_;
  Fault* slot_ = nullptr;  // allocated when first needed
};

// Those of a stream, and of the graphs that have run on it.
class FaultList {
 public:
  Fault* slot() { return own_.slot(); }
  void watch(std::shared_ptr<Faults>);
  dvt_status tell();

 private:
  Faults own_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Faults>> watched_;
};
}  // namespace gpu
