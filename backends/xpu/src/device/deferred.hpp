// What is to be done when a device has come to a certain place: memory that is given back while work on it is
// queued.
#pragma once
#include <functional>
#include <mutex>
#include <sycl/sycl.hpp>
#include <vector>

namespace xpu {
class Deferred {
 public:
  // action() runs in a later sweep() or drain(), once the event has passed.
  void after(sycl::event event, std::function<void()> action);
  void sweep();    // what can be done now
  void drain();    // waits for the rest
  void abandon();  // the rest, without a wait: nothing that was queued will run

 private:
  struct Item {
    sycl::event event;
    std::function<void()> action;
  };
  std::vector<Item> take();

  std::mutex mutex_;
  std::vector<Item> items_;
};
}  // namespace xpu
