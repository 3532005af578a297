// Starting child processes, for the files of this folder.
#pragma once
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace dovetail::platform {
// Bytes kept of each output. A child that prints without end must not fill the memory of this process.
constexpr size_t kMostKept = size_t{64} << 10;

class Pipe {
 public:
  Pipe();
  ~Pipe() { close_end(0), close_end(1); }
  Pipe(const Pipe&) = delete;
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_end(int which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }
  // Appends what can be read now and keeps the last kMostKept bytes; closes the pipe at its end.
  void drain(std::string& to);

 private:
  int ends_[2];
};

struct Spawn {
  const std::vector<std::string>& command;
  int input, output, errors;  // what the child gets as its first files; below 0: /dev/null
  int kept = -1;              // what it gets as file 3, if any
  bool own_session = false;   // no signal of the terminal reaches it
};
// The child starts with no blocked signal and with default handlers. Returns an error of errno.h; 0: none.
int spawn(const Spawn&, pid_t& child);

enum class Child { running, ended, reaped };
// Reaps the child if it has ended. `reaped`: its status cannot be known any more, because SIGCHLD is ignored or
// another thread waited for all children; its process id may belong to another process by now.
Child look_at(pid_t child, int& status, bool wait);
}  // namespace dovetail::platform
