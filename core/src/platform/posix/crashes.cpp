// A note that a crash of this process leaves for the next process.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <utility>

#include "platform/platform.hpp"

namespace dovetail::platform {
namespace {
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
constexpr size_t kStack = size_t{64} << 10;  // of the handler, for a crash that has used up the thread's own

// The state of the only CrashNote. A signal handler can reach only static storage.
struct {
  std::string path, text;
  struct sigaction before[std::size(kSignals)];
  char names[std::size(kSignals)][16];
  volatile sig_atomic_t open;  // a handler that the library installed may still call ours when the note is closed
} note;

// Calls only functions that are safe in a signal handler.
void on_crash(int signal, siginfo_t* info, void*) {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] != signal) continue;
    const int file =
        !note.open ? -1 : open(note.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) {
      write_all(file, note.names[i]);
      write_all(file, note.text);
      close(file);
    }
    sigaction(signal, &note.before[i], nullptr);
  }
  // A fault happens again when the handler returns; a signal that was sent does not.
  if (info->si_code <= 0) raise(signal);
}

bool is_ours(const struct sigaction& action) {
  return action.sa_flags & SA_SIGINFO && action.sa_sigaction == on_crash;
}
}  // namespace

CrashNote::CrashNote(std::string path, const std::string& text) {
  note.path = std::move(path);
  note.text = "\n" + text + "\n";
  stack_t stack{};
  if (!sigaltstack(nullptr, &stack) && stack.ss_flags & SS_DISABLE) {
    stack_ = std::make_unique<char[]>(kStack);
    stack = {};
    stack.ss_sp = stack_.get(), stack.ss_size = kStack;
    sigaltstack(&stack, nullptr);
  }
  struct sigaction action{};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    std::strncpy(note.names[i], signal_name(kSignals[i]).c_str(), sizeof note.names[i] - 1);
    sigaction(kSignals[i], &action, &note.before[i]);
  }
  note.open = 1;
}

CrashNote::~CrashNote() {
  note.open = 0;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now;
    // The library may have installed a handler of its own meanwhile.
    if (!sigaction(kSignals[i], nullptr, &now) && is_ours(now)) sigaction(kSignals[i], &note.before[i], nullptr);
  }
  stack_t stack{};
  if (stack_ && !sigaltstack(nullptr, &stack) && stack.ss_sp == stack_.get()) {
    stack = {};
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  }
}
}  // namespace dovetail::platform
