// Protects the process from a library that crashes while it is opened: a child process opens the library first, and
// a crash leaves a note for the next process.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "platform/platform.hpp"

namespace dovetail {
struct Backend;

// Lives while a library is opened in this process, up to its devices.
//
// The constructor opens the library in a child process. It throws Error(runtime) with a cure where the child
// crashed, hung or left, or where an earlier process left a note that this library crashed it. The cache keeps
// which libraries did not crash until the machine starts again; it does not keep what they answered. A crash of
// this process before the destructor runs leaves such a note.
//
// `pack_of`: the backend of the kernel pack that the library is; nullptr: the library is a backend.
class ProbedOpening {
 public:
  ProbedOpening(const std::string& name, const std::string& library, const std::vector<std::string>& search,
                const Backend* pack_of);

 private:
  std::optional<platform::CrashNote> note_;
};
}  // namespace dovetail
