#include "device/fiber.hpp"

#include <sys/mman.h>

#include <new>

#ifdef __SANITIZE_ADDRESS__
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {
namespace {
constexpr size_t page = 4096, stack_size = 64 * page, mapped = page + stack_size;
thread_local Fiber* started;  // by the switch that is being made

#ifndef EMULATOR_UCONTEXT
// Saves where to go on and the stack pointer, and goes on where the other stack was left. The compiler saves the
// registers that it uses. Red zone: what a function keeps below its stack pointer is stepped over.
[[gnu::noinline]] void switch_stacks(void** from, void* to) {
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
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}
#endif
}  // namespace

void Fiber::Unmap::operator()(std::byte* memory) const { munmap(memory, mapped); }

Fiber::Fiber() {
#ifdef __SANITIZE_ADDRESS__
  pthread_attr_t attributes;
  void* bottom;
  if (pthread_getattr_np(pthread_self(), &attributes)) throw std::bad_alloc();
  pthread_attr_getstack(&attributes, &bottom, &size_);
  pthread_attr_destroy(&attributes);
  bottom_ = bottom;
#endif
}

Fiber::Fiber(void (*entry)(), size_t number) : entry_(entry) {
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_.reset(static_cast<std::byte*>(memory));
  mprotect(memory, page, PROT_NONE);
  std::byte* const bottom = memory_.get() + page;
  const size_t size = stack_size - number * 320 % page / 64 * 64;
#ifdef EMULATOR_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = bottom;
  context_.uc_stack.ss_size = size;
  makecontext(&context_, begin, 0);
#else
  // As if a switch had left it in front of begin(), which finds the stack as a call would have left it.
  void** top = reinterpret_cast<void**>(bottom + size);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&begin);
  top_ = top;
#endif
#ifdef __SANITIZE_ADDRESS__
  bottom_ = bottom, size_ = size;
#endif
}

void Fiber::begin() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  started->entry_();
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  started = &to;
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
