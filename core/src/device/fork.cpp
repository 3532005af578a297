// In the child only this thread exists: short locks are held across the fork so that nothing is half-changed, those
// that another thread may hold for long are made anew, and devices whose driver does not survive are marked so.
#include "device/fork.hpp"

#include "device/device.hpp"
#include "device/pool.hpp"
#include "device/timeline.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
const std::vector<Device*>* frozen;

void before() {
  toolchains_before_fork();  // first: a plugin that is given code may ask for what the others guard
  frozen = &loader_before_fork();
  for (Device* device : *frozen) {
    device->pool->before_fork();
    queues_before_fork(*device);
  }
}

void after(bool in_child) {
  for (Device* device : *frozen) {
    queues_after_fork(*device, in_child);
    device->pool->after_fork(in_child);
  }
  loader_after_fork(in_child);
  toolchains_after_fork(in_child);
}

void in_parent() { after(false); }
void in_child() {
  after(true);
  forget_threads_after_fork();
  recording_after_fork();
  for (Device* device : devices())
    if (!(device->props.caps & DVT_CAP_FORK_SAFE) && device->state != DeviceState::closed)
      device->make_unusable(DeviceState::forked);
}

const bool registered = (platform::at_fork(before, in_parent, in_child), true);
}  // namespace
}  // namespace dovetail
