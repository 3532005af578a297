#include "device/deferred.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpu {
void Deferred::after(CUstream stream, std::function<void()> action) {
  Event event;
  GPU_CALL(cuEventRecord(event.get(), stream));
  const std::lock_guard guard(mutex_);
  items_.push_back({std::move(event), std::move(action)});
}

void Deferred::sweep() {
  std::vector<Item> done;
  {
    const std::lock_guard guard(mutex_);
    const auto first =
        std::partition(items_.begin(), items_.end(), [](const Item& item) { return !item.event.passed(); });
    done.assign(std::move_iterator(first), std::move_iterator(items_.end()));
    items_.erase(first, items_.end());
  }
  for (Item& item : done) item.action();
}

void Deferred::drain() {
  for (Item& item : take()) {
    GPU_CALL(cuEventSynchronize(item.event.get()));
    item.action();
  }
}

void Deferred::abandon() {
  for (Item& item : take()) item.action();
}

std::vector<Deferred::Item> Deferred::take() {
  const std::lock_guard guard(mutex_);
  return std::exchange(items_, {});
}
}  // namespace gpu
