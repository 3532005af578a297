// Captures that are under way on a device: where the kernels of each write their faults, by CUDA's number of it.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/faults.hpp"
#include "driver/driver.hpp"

namespace gpu {
class Recordings {
 public:
  void begin(cuuint64_t id) {
    const std::lock_guard guard(mutex_);
    faults_[id] = std::make_shared<Faults>();
  }
  std::shared_ptr<Faults> end(cuuint64_t id) {
    const std::lock_guard guard(mutex_);
    const auto node = faults_.extract(id);
    return node ? node.mapped() : nullptr;
  }
  // nullptr: of a capture that somebody else began
  std::shared_ptr<Faults> find(cuuint64_t id) {
    const std::lock_guard guard(mutex_);
    const auto it = faults_.find(id);
    return it == faults_.end() ? nullptr : it->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<cuuint64_t, std::shared_ptr<Faults>> faults_;
};
}  // namespace gpu
