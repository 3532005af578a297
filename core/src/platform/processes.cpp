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

#include "platform/platform.hpp"

extern char** environ;

namespace dovetail::platform {
namespace {
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
  // Takes what is there; closes the pipe at its end.
  void drain(std::string& to) {
    char bytes[4096];
    const ssize_t n = read(reading(), bytes, sizeof bytes);
    if (n > 0) to.append(bytes, size_t(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) close_end(0);
  }

 private:
  int ends_[2];
};

int start(const std::vector<std::string>& command, const Pipe& output, const Pipe& errors, pid_t& child) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.writing(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.writing(), 2);
  // The caller's blocked signals and handlers are none of the child's business.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(&child, words[0], &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
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

  // A grandchild may hold the pipes open for ever: so the child's end is looked for between short waits, too.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  bool gone = false;
  while (!gone) {
    const bool open = output.reading() >= 0 || errors.reading() >= 0;
    pollfd waiting[] = {{output.reading(), POLLIN, 0}, {errors.reading(), POLLIN, 0}};
    poll(waiting, 2, open ? 20 : 1);
    if (waiting[0].revents) output.drain(ended.output);
    if (waiting[1].revents) errors.drain(ended.errors);
    if (!waiting[0].revents && !waiting[1].revents) gone = waitpid(child, &status, WNOHANG) == child;
    if (!gone && std::chrono::steady_clock::now() >= deadline) {
      ended.timed_out = true;
      kill(child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      gone = true;
    }
  }
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  else ended.exit_code = WEXITSTATUS(status);
  return ended;
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
