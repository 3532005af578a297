// Actions for the time when a stream has passed an event: frees of memory that queued work still uses.
#pragma once
#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace gpu {
// Event: bool passed() const; void wait() const.
template <class Event>
class Deferred {
 public:
  // action() runs in a later sweep() or drain(), once the event has passed.
  void after(Event event, std::function<void()> action) {
    const std::lock_guard guard(mutex_);
    items_.push_back({std::move(event), std::move(action)});
  }
  // Runs the actions whose events have passed.
  void sweep() {
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
  // Waits for all events.
  void drain() {
    for (Item& item : take()) {
      item.event.wait();
      item.action();
    }
  }
  // Runs all actions without a wait, on a device that is lost: nothing that was queued will run.
  void abandon() {
    for (Item& item : take()) item.action();
  }

 private:
  struct Item {
    Event event;
    std::function<void()> action;
  };
  std::vector<Item> take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(items_, {});
  }

  std::mutex mutex_;
  std::vector<Item> items_;
};
}  // namespace gpu
