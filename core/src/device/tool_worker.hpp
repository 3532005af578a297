// The conversation with the worker process of a toolchain (docs/toolchains.md has the protocol).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/private_folder.hpp"
#include "platform/worker.hpp"

namespace dovetail {
struct Tool {
  std::vector<std::string> command;  // which starts its worker
  std::string fingerprint;           // what it makes depends on it, beside the request
  std::string problem;               // why it cannot be used; empty: it can
};

class ToolWorker {
 public:
  // Throws Error(runtime) where it does not start. `place`: a lock that lasts as long as the process.
  ToolWorker(const Tool& tool, const platform::FileLock& place);
  struct Answer {
    bool made;
    std::string bytes;      // the image, or why there is none
    uint32_t microseconds;  // of CPU time
  };
  // Throws Error(runtime) where the worker dies, does not answer or breaks the protocol. It is of no use then.
  Answer ask(std::string_view request);
  bool running() { return process_->running(); }
  void leave_to_parent() { process_->leave_to_parent(); }

 private:
  platform::Worker::Time until() const;
  std::unique_ptr<platform::Worker> process_;
};
}  // namespace dovetail
