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
}  // namespace

constinit thread_local Fiber* Fiber::entered = nullptr;

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
  // Prepares the stack as if a switch had stopped at begin(), just after a call.
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
  entered->entry_();
}
}  // namespace emulator
