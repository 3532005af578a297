// Toolchains: their workers, and the code that they make, know Linux alone.
#include "platform/worker.hpp"

#include "platform/windows/spawn.hpp"

namespace dovetail::platform {
Worker::Worker() = default;
Worker::~Worker() = default;

std::unique_ptr<Worker> Worker::start(const std::vector<std::string>&, int, std::string& error) {
  error = "Windows has no toolchains: unset DOVETAIL_TOOLCHAINS, and groups of ops run by the device's own kernels";
  return nullptr;
}

bool Worker::send(std::string_view, Time) { return false; }
bool Worker::receive(void*, size_t, Time) { return false; }
std::string Worker::post_mortem() { return "ended"; }
bool Worker::running() { return false; }
bool Worker::wait(short, Time) { return false; }
void Worker::end(std::chrono::milliseconds) {}
void Worker::leave_to_parent() {}
}  // namespace dovetail::platform
