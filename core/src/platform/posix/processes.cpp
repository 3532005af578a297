// A child process with its output collected, and fork.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "platform/platform.hpp"
#include "platform/posix/spawn.hpp"

namespace dovetail::platform {
Ended run_process(const std::vector<std::string>& command, std::chrono::milliseconds timeout) {
  Ended ended;
  Pipe output, errors;
  if (output.reading() < 0 || errors.reading() < 0) {
    ended.start_error = std::strerror(errno);
    return ended;
  }
  pid_t child;
  if (const int error = spawn({command, -1, output.writing(), errors.writing()}, child)) {
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

void at_exit(void (*function)()) { std::atexit(function); }

std::vector<std::string> arguments(int argc, char** argv) { return {argv, argv + argc}; }

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
