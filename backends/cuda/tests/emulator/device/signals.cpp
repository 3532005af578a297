#include "device/signals.hpp"

#include <signal.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <mutex>

#include "device/multiprocessor.hpp"

namespace emulator {
namespace {
constexpr std::array signals = {SIGSEGV, SIGBUS, SIGFPE};
std::array<struct sigaction, signals.size()> before;

KernelError error_of(int signal, const siginfo_t& info) {
  if (signal == SIGFPE) return {KernelError::failed, "divides an integer by zero, or the least one by -1"};
  char text[80];
  std::snprintf(text, sizeof text, "uses the address 0x%llx, which it may not, or not with its alignment",
                (unsigned long long)reinterpret_cast<uintptr_t>(info.si_addr));
  return {KernelError::illegal_address, text};
}

// It does not return into the kernel: its stack is abandoned. Such a signal comes from the kernel's current
// instruction, so it interrupts nothing that must be finished.
void handle(int signal, siginfo_t* info, void*) {
  if (current_thread) Multiprocessor::of_kernel().fail(*current_thread, error_of(signal, *info));
  for (size_t i = 0; i < signals.size(); ++i)
    if (signals[i] == signal)
      sigaction(signal, &before[i], nullptr);  // the next handler: the instruction is tried again
}
}  // namespace

void catch_signals_of_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before[i]);
  });
}
}  // namespace emulator
