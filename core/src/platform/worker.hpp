// A child process that answers requests, one after another.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::platform {
class Pipe;

// It talks through a socket, which is its standard input, both ways. It has a session of its own, so that Ctrl-C
// does not reach it. For one thread at a time.
class Worker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // `kept`: a file that it holds open as number 3; below 0: none. nullptr, and `error`: it cannot be started.
  static std::unique_ptr<Worker> start(const std::vector<std::string>& command, int kept, std::string& error);
  ~Worker();  // closes the socket, at which it leaves, within two seconds or by force
  Worker(const Worker&) = delete;
  // False: not until then, or it has closed the socket.
  bool send(std::string_view bytes, Time until);
  bool receive(void* bytes, size_t size, Time until);
  // After a false, what became of it: "died with SIGABRT, saying: ...". It is ended first.
  std::string post_mortem();
  bool running();
  // In a process that fork() made, which has copies of the files; the object is not used again.
  void leave_to_parent();

 private:
  Worker();
  // Waits until the socket is ready, and reads what it prints meanwhile.
  bool wait(short events, Time until);
  void end(std::chrono::milliseconds grace);
  int64_t process_ = 0;  // 0: it has ended
  int socket_ = -1, status_ = 0;
  bool late_ = false, status_known_ = false;
  std::unique_ptr<Pipe> errors_;
  std::string said_;
};
}  // namespace dovetail::platform
