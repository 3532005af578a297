// A child process with its output collected, and fork.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include "platform/platform.hpp"

extern char** environ;

namespace dovetail::platform {
namespace {
// Bytes kept of each output. A child that prints without end must not fill the memory of this process.
constexpr size_t kMostKept = size_t{64} << 10;

class Pipe {
 public:
  Pipe() {
#if defined(__linux__)
    if (pipe2(ends_, O_CLOEXEC)) ends_[0] = ends_[1] = -1;
#else
    if (pipe(ends_)) ends_[0] = ends_[1] = -1;
    for (const int end : ends_)
      if (end >= 0) fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
  }
  ~Pipe() { close_end(0), close_end(1); }
  Pipe(const Pipe&) = delete;
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_end(int which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }
  // Appends what can be read now and keeps the last kMostKept bytes; closes the pipe at its end.
  void drain(std::string& to) {
    char bytes[kMostKept / 2];
    const ssize_t n = read(reading(), bytes, sizeof bytes);
    if (n > 0) {
      to.append(bytes, size_t(n));
      if (to.size() > kMostKept) to.erase(0, to.size() - kMostKept);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      close_end(0);
    }
  }

 private:
  int ends_[2];
};

int start(const std::vector<std::string>& command, const Pipe& output, const Pipe& errors, pid_t& child) {
  std::vector<char*> arguments;
  for (const std::string& text : command) arguments.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.writing(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.writing(), 2);
  // The child starts with no blocked signal and with default handlers.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

enum class Child { running, ended, reaped };

// Reaps the child if it has ended. `reaped`: its status cannot be known any more, because SIGCHLD is ignored or
// another thread waited for all children; its process id may belong to another process by now.
Child look_at(pid_t child, int& status, bool wait) {
  pid_t found;
  do found = waitpid(child, &status, wait ? 0 : WNOHANG);
  while (found < 0 && errno == EINTR);
  return found == child ? Child::ended : found == 0 ? Child::running : Child::reaped;
}
}  // namespace

Ended run_process(const std::vector<std::string>& command, std::chrono::milliseconds timeout) {
  Ended ended;
  Pipe output, errors;
  if (output.reading() < 0 || errors.reading() < 0) {
    ended.start_error = std::strerror(errno);
    return ended;
  }
  pid_t child;
  if (const int error = start(command, output, errors, child)) {
    ended.start_error = std::strerror(error);
    return ended;
  }
  output.close_end(1), errors.close_end(1);

  // A grandchild may hold the pipes open after the child has ended, hence the look at the child between short
  // waits.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  Child state = Child::running;
  const auto drain = [&](int milliseconds) {
    pollfd waiting[] = {{output.reading(), POLLIN, 0}, {errors.reading(), POLLIN, 0}};
    poll(waiting, 2, milliseconds);
    if (waiting[0].revents) output.drain(ended.output);
    if (waiting[1].revents) errors.drain(ended.errors);
    return waiting[0].revents || waiting[1].revents;
  };
  while (state == Child::running) {
    const bool open = output.reading() >= 0 || errors.reading() >= 0;
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (!drain(open ? 20 : 1) || late) state = look_at(child, status, false);
    if (state == Child::running && late) {
      ended.timed_out = true;
      kill(child, SIGKILL);
      state = look_at(child, status, true);
    }
  }
  // Read what the child wrote just before its end. The bound stops a grandchild that writes without end.
  for (int i = 0; i < 16 && drain(0);) ++i;
  ended.status_known = state == Child::ended;
  if (!ended.status_known) return ended;
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  else ended.exit_code = WEXITSTATUS(status);
  return ended;
}

int take_stdout() {
  const int own = fcntl(1, F_DUPFD_CLOEXEC, 3);
  dup2(2, 1);
  return own;
}

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(file, text.data(), text.size());
    if (n > 0) text.remove_prefix(size_t(n));
    else if (errno != EINTR) return;
  }
}

std::string signal_name(int signal) {
  switch (signal) {
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGKILL: return "SIGKILL";
    case SIGSEGV: return "SIGSEGV";
    case SIGSYS: return "SIGSYS";
    case SIGTERM: return "SIGTERM";
    case SIGTRAP: return "SIGTRAP";
    default: return "signal " + std::to_string(signal);
  }
}

void no_core_files() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

void leave(int exit_code) { _exit(exit_code); }

uint32_t process_id() { return uint32_t(getpid()); }

uint64_t thread_id() {
#if defined(__linux__)
  return uint64_t(syscall(SYS_gettid));
#elif defined(__APPLE__)
  uint64_t id = 0;
  pthread_threadid_np(nullptr, &id);
  return id;
#else
  return uint64_t(std::hash<std::thread::id>{}(std::this_thread::get_id()));
#endif
}

bool on_main_thread() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
  return pthread_main_np() != 0;
#else
  return false;
#endif
}

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  pthread_atfork(before, in_parent, in_child);
}
}  // namespace dovetail::platform
