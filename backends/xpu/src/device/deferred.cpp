#include "device/deferred.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "device/device.hpp"

namespace xpu {
void Deferred::after(sycl::event event, std::function<void()> action) {
  const std::lock_guard guard(mutex_);
  items_.push_back({std::move(event), std::move(action)});
}

void Deferred::sweep() {
  std::vector<Item> done;
  {
    const std::lock_guard guard(mutex_);
    const auto first =
        std::partition(items_.begin(), items_.end(), [](const Item& item) { return !passed(item.event); });
    done.assign(std::move_iterator(first), std::move_iterator(items_.end()));
    items_.erase(first, items_.end());
  }
  for (Item& item : done) item.action();
}

void Deferred::drain() {
  for (Item& item : take()) {
    if (!passed(item.event)) item.event.wait();
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
}  // namespace xpu
