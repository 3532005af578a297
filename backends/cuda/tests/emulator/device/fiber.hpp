// Stacks between which a thread of the operating system switches without a system call. On x86-64 a switch is
// a dozen instructions; elsewhere it is swapcontext, which is correct but far slower. Switches are reported
// to the address sanitizer.
#pragma once
#include <cstddef>
#include <memory>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) || defined(EMULATOR_PORTABLE_FIBERS)
#include <ucontext.h>
#define EMULATOR_UCONTEXT 1
#endif

namespace emulator {
class Fiber {
 public:
  // The stack of the calling thread, to switch back to.
  Fiber();
  // A stack of its own, on which entry() runs from the first switch on; entry never returns. Fibers of
  // different numbers begin at different offsets in their pages: otherwise their frames would map to the same
  // cache lines.
  Fiber(void (*entry)(), size_t number);

  // Leaves `from`, the caller's stack, until a later switch back to it.
  static void switch_to(Fiber& from, Fiber& to);

 private:
  struct Unmap {
    void operator()(std::byte* memory) const;
  };
  static void begin();
  // By the last switch of this thread.
  static constinit thread_local Fiber* entered;

  std::unique_ptr<std::byte, Unmap> memory_;
  void (*entry_)() = nullptr;
#ifdef EMULATOR_UCONTEXT
  ucontext_t context_ = {};
#else
  void* top_ = nullptr;  // the stack pointer while another fiber runs
#endif
#ifdef __SANITIZE_ADDRESS__
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* fake_stack_ = nullptr;
#endif
};

#ifndef EMULATOR_UCONTEXT
// Saves the address to continue at and the stack pointer, and continues on the other stack. The compiler
// saves the registers that it uses. It may use the red zone below its stack pointer, which is skipped.
inline void switch_stacks(void** from, void* to) {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n\t"
      "push %%rbp\n\t"
      "lea 1f(%%rip), %%rax\n\t"
      "push %%rax\n\t"
      "mov %%rsp, (%%rdi)\n\t"
      "mov %%rsi, %%rsp\n\t"
      "pop %%rax\n\t"
      "jmp *%%rax\n"
      "1:\n\t"
      "pop %%rbp\n\t"
      "lea 128(%%rsp), %%rsp"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",  //
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15");
}
#endif

inline void Fiber::switch_to(Fiber& from, Fiber& to) {
  entered = &to;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
#endif
#ifdef EMULATOR_UCONTEXT
  swapcontext(&from.context_, &to.context_);
#else
  switch_stacks(&from.top_, to.top_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}
}  // namespace emulator
