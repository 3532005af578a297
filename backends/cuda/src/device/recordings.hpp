// Captures that are under way on a device, by CUDA's number of each.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/faults.hpp"
#include "driver/driver.hpp"

namespace gpu {
struct Recording {
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();  // where its kernels write theirs
  std::vector<std::function<void()>> at_end;
};

class Recordings {
 public:
  void begin(cuuint64_t id) {
    const std::lock_guard guard(mutex_);
    recordings_[id] = {};
  }
  // Returns a recording without faults if another owner began the capture.
  Recording end(cuuint64_t id) {
    const std::lock_guard guard(mutex_);
    auto node = recordings_.extract(id);
    return node ? std::move(node.mapped()) : Recording{nullptr, {}};
  }
  // Returns nullptr if another owner began the capture.
  std::shared_ptr<Faults> find(cuuint64_t id) {
    const std::lock_guard guard(mutex_);
    const auto it = recordings_.find(id);
    return it == recordings_.end() ? nullptr : it->second.faults;
  }
  // Runs the action at the capture's end, as it cannot run on a stream that records. Returns false if another owner
  // began the capture.
  bool at_end(cuuint64_t id, std::function<void()> action) {
    const std::lock_guard guard(mutex_);
    const auto it = recordings_.find(id);
    if (it != recordings_.end()) it->second.at_end.push_back(std::move(action));
    return it != recordings_.end();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<cuuint64_t, Recording> recordings_;
};
}  // namespace gpu
