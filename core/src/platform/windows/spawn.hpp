// Starting child processes, for the files of this folder.
#pragma once
#include <string>
#include <vector>

#include "platform/windows/windows.hpp"

namespace dovetail::platform {
// Bytes kept of each output. A child that prints without end must not fill the memory of this process.
constexpr size_t kMostKept = size_t{64} << 10;

class Pipe {  // from a child to this process
 public:
  Pipe();
  HANDLE writing() const { return writing_.get(); }
  explicit operator bool() const { return bool(reading_); }
  void close_writing() { writing_.close(); }
  // Appends what can be read now and keeps the last kMostKept bytes. Returns whether there was anything.
  bool drain(std::string& to);

 private:
  Handle reading_, writing_;
};

struct Spawn {
  const std::vector<std::string>& command;
  HANDLE output, errors;
};
// The child, which inherits these files alone and has no window; on failure, none, and GetLastError().
Handle spawn(const Spawn&);
}  // namespace dovetail::platform
