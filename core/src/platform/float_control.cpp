// How the processor computes, whichever the operating system.
#include "platform/platform.hpp"

namespace dovetail::platform {
#if defined(__x86_64__)
constexpr uint32_t kFlags = 0x3f;  // of past operations
uint64_t float_control() { return __builtin_ia32_stmxcsr() & ~kFlags; }
void set_float_control(uint64_t control) {
  __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & kFlags) | uint32_t(control));
}
#elif defined(__aarch64__)
uint64_t float_control() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void set_float_control(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
uint64_t float_control() { return 0; }
void set_float_control(uint64_t) {}
#endif
}  // namespace dovetail::platform
