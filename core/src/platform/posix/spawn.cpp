#include "platform/posix/spawn.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace dovetail::platform {
Pipe::Pipe() {
#if defined(__linux__)
  if (pipe2(ends_, O_CLOEXEC)) ends_[0] = ends_[1] = -1;
#else
  if (pipe(ends_)) ends_[0] = ends_[1] = -1;
  for (const int end : ends_)
    if (end >= 0) fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
}

void Pipe::drain(std::string& to) {
  char bytes[kMostKept / 2];
  const ssize_t n = read(reading(), bytes, sizeof bytes);
  if (n > 0) {
    to.append(bytes, size_t(n));
    if (to.size() > kMostKept) to.erase(0, to.size() - kMostKept);
  } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
    close_end(0);
  }
}

int spawn(const Spawn& what, pid_t& child) {
  std::vector<char*> arguments;
  for (const std::string& text : what.command) arguments.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int files[] = {what.input, what.output, what.errors};
  for (int i = 0; i < 3; ++i) {
    if (files[i] >= 0) posix_spawn_file_actions_adddup2(&actions, files[i], i);
    else posix_spawn_file_actions_addopen(&actions, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
  }
  if (what.kept >= 0) posix_spawn_file_actions_adddup2(&actions, what.kept, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int session = what.own_session ? POSIX_SPAWN_SETSID : 0;
  posix_spawnattr_setflags(&attributes, short(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
  const int error = posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

Child look_at(pid_t child, int& status, bool wait) {
  pid_t found;
  do found = waitpid(child, &status, wait ? 0 : WNOHANG);
  while (found < 0 && errno == EINTR);
  return found == child ? Child::ended : found == 0 ? Child::running : Child::reaped;
}
}  // namespace dovetail::platform
