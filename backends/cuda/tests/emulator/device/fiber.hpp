// Stacks between which an operating system's thread switches without a system call. On x86-64 a switch is a dozen
// instructions; elsewhere it is swapcontext, as right but far slower. The address sanitizer is told of switches.
#pragma once
#include <cstddef>
#include <memory>

#if !defined(__x86_64__) || defined(EMULATOR_PORTABLE_FIBERS)
#include <ucontext.h>
#define EMULATOR_UCONTEXT 1
#endif

namespace emulator {
class Fiber {
 public:
  // The stack that the calling thread runs on: something to switch back to.
  Fiber();
  // A stack of its own, on which entry() runs from the first switch on; entry never returns. Fibers of different
  // numbers begin at different offsets in their pages: else their frames would contend for the same lines of the
  // cache.
  Fiber(void (*entry)(), size_t number);

  // Leaves `from`, on which the caller runs, until something switches back to it.
  static void switch_to(Fiber& from, Fiber& to);

 private:
  struct Unmap {
    void operator()(std::byte* memory) const;
  };
  static void begin();

  std::unique_ptr<std::byte, Unmap> memory_;
  void (*entry_)() = nullptr;
#ifdef EMULATOR_UCONTEXT
  ucontext_t context_ = {};
#else
  void* top_ = nullptr;  // the stack pointer while something else runs
#endif
#ifdef __SANITIZE_ADDRESS__
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* fake_stack_ = nullptr;
#endif
};
}  // namespace emulator
