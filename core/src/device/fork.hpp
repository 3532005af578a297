// Handlers for fork() of the runtime's parts.
#pragma once
#include <vector>

namespace dovetail {
struct Device;
void forget_threads_after_fork();  // the child has none of the pool's threads
// Returns the devices; none is added until loader_after_fork.
const std::vector<Device*>& loader_before_fork();
void loader_after_fork(bool in_child);
void toolchains_before_fork();
void toolchains_after_fork(bool in_child);
void queues_before_fork(Device&);
void queues_after_fork(Device&, bool in_child);
}  // namespace dovetail
