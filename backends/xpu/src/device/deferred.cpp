#include "device/deferred.hpp"

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
    std::vector<Item> waiting;
    for (Item& item : items_) (passed(item.event) ? done : waiting).push_back(std::move(item));
    items_ = std::move(waiting);
  }
  for (Item& item : done) item.action();
}

void Deferred::drain() {
  std::vector<Item> items;
  {
    const std::lock_guard guard(mutex_);
    items.swap(items_);
  }
  for (Item& item : items) {
    item.event.wait();
    item.action();
  }
}
}  // namespace xpu
