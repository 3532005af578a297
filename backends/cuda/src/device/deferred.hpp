// What is to be done when a stream has come to a certain place: memory that is given back while work on it is
// queued.
#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "device/event.hpp"

namespace gpu {
class Deferred {
 public:
  // action() runs in a later sweep() or drain(), once the stream has done what is queued now.
  void after(CUstream, std::function<void()> action);
  void sweep();    // what can be done now
  void drain();    // waits for the rest
  void abandon();  // the rest, without a wait: nothing that was queued will run

 private:
  struct Item {
    Event event;
    std::function<void()> action;
  };
  std::vector<Item> take();

  std::mutex mutex_;
  std::vector<Item> items_;
};
}  // namespace gpu
