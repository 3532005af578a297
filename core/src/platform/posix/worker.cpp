#include "platform/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "platform/platform.hpp"
#include "platform/posix/spawn.hpp"

namespace dovetail::platform {
namespace {
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

#if defined(MSG_NOSIGNAL)
constexpr int kNoSignal = MSG_NOSIGNAL;  // a worker that has gone is no reason for SIGPIPE
#else
constexpr int kNoSignal = 0;
#endif

// The file under another number, above those that a child gets.
int moved_up(int file) {
  if (file < 0) return file;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, 10);
  close(file);
  return moved;
}
}  // namespace

Worker::Worker() : errors_(std::make_unique<Pipe>()) {}

std::unique_ptr<Worker> Worker::start(const std::vector<std::string>& command, int kept, std::string& error) {
  std::unique_ptr<Worker> worker(new Worker);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
    error = std::strerror(errno);
    return nullptr;
  }
  worker->socket_ = moved_up(ends[0]);
  const int theirs = moved_up(ends[1]);
  const int prints = moved_up(dup(worker->errors_->writing()));
  const int high = kept < 0 ? -1 : fcntl(kept, F_DUPFD_CLOEXEC, 10);
  pid_t child = 0;
  int failed = errno;
  if (worker->socket_ >= 0 && theirs >= 0 && prints >= 0)
    failed = spawn({command, theirs, -1, prints, high, true}, child);
  for (const int file : {theirs, prints, high})
    if (file >= 0) close(file);
  worker->errors_->close_end(1);
  if (failed) {
    error = std::strerror(failed);
    return nullptr;
  }
#if defined(SO_NOSIGPIPE)
  const int on = 1;
  setsockopt(worker->socket_, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  worker->process_ = child;
  return worker;
}

Worker::~Worker() { end(milliseconds(2000)); }

bool Worker::wait(short events, Time until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    if (left <= 0) return late_ = true, false;
    pollfd files[] = {{socket_, events, 0}, {errors_->reading(), POLLIN, 0}};
    poll(files, 2, int(std::min<int64_t>(left, 1000)));
    if (files[1].revents) errors_->drain(said_);
    if (files[0].revents) return true;
  }
}

bool Worker::send(std::string_view bytes, Time until) {
  while (!bytes.empty()) {
    if (!wait(POLLOUT, until)) return false;
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | kNoSignal);
    if (n > 0) bytes.remove_prefix(size_t(n));
    else if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
  }
  return true;
}

bool Worker::receive(void* bytes, size_t size, Time until) {
  for (char* at = static_cast<char*>(bytes); size > 0;) {
    if (!wait(POLLIN, until)) return false;
    const ssize_t n = recv(socket_, at, size, MSG_DONTWAIT);
    if (n > 0) at += n, size -= size_t(n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
  }
  return true;
}

bool Worker::running() {
  if (!process_) return false;
  const Child child = look_at(pid_t(process_), status_, false);
  if (child == Child::running) return true;
  status_known_ = child == Child::ended;
  process_ = 0;
  return false;
}

void Worker::end(milliseconds grace) {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  const Time until = Clock::now() + grace;
  while (running() && Clock::now() < until) {
    if (errors_->reading() >= 0) {
      pollfd file{errors_->reading(), POLLIN, 0};
      if (poll(&file, 1, 5) > 0) errors_->drain(said_);
    } else {
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  if (!process_) return;
  kill(pid_t(process_), SIGKILL);
  status_known_ = look_at(pid_t(process_), status_, true) == Child::ended;
  process_ = 0;
}

std::string Worker::post_mortem() {
  end(late_ ? milliseconds(0) : milliseconds(2000));
  // What it wrote just before its end. The bound stops a grandchild that writes without end.
  for (int i = 0; i < 16 && errors_->reading() >= 0; ++i) {
    pollfd file{errors_->reading(), POLLIN, 0};
    if (poll(&file, 1, 0) <= 0) break;
    errors_->drain(said_);
  }
  std::string text = "ended";
  if (late_) text = "did not answer in time";
  else if (status_known_ && WIFSIGNALED(status_)) text = "died with " + signal_name(WTERMSIG(status_));
  else if (status_known_) text = "left with exit code " + std::to_string(WEXITSTATUS(status_));
  while (!said_.empty() && (said_.back() == '\n' || said_.back() == ' ')) said_.pop_back();
  if (said_.empty()) return text;
  std::string last = said_.substr(said_.rfind('\n') + 1);  // of a traceback the error, of an abort its reason
  if (last.size() > 400) last.replace(400, std::string::npos, "...");
  return text + ", saying: " + last;
}

void Worker::leave_to_parent() {
  if (socket_ >= 0) close(socket_);
  errors_->close_end(0);
}
}  // namespace dovetail::platform
