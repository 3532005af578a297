// What happens to the runtime's parts when the process forks.
#pragma once
#include <vector>

namespace dovetail {
struct Device;
void forget_threads_after_fork();  // the child has none of the pool's threads
// No device is added until loader_after_fork; returns those that there are.
const std::vector<Device*>& loader_before_fork();
void loader_after_fork(bool in_child);
void queues_before_fork(Device&);
void queues_after_fork(Device&, bool in_child);
}  // namespace dovetail
