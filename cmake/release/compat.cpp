// Functions that this libstdc++ needs and an older glibc or libstdc++ lacks. Linked into each library,
// hidden, before the linker searches libstdc++.a, which would bring a second std::terminate with handlers of
// its own.
#include <cstdlib>
#include <exception>
#include <new>

// glibc 2.32. Never true: reference counts stay atomic.
char __libc_single_threaded = 0;

namespace __cxxabiv1 {
[[noreturn]] void __terminate(std::terminate_handler handler) noexcept {
  handler();
  std::abort();
}
}  // namespace __cxxabiv1

namespace std {
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std
