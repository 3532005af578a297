// A library that is opened when it is first needed.
#pragma once
#include <dlfcn.h>

namespace dovetail::cpu {
class Library {
 public:
  // By name, next to our own library (the loader searches the caller's RUNPATH). Never closed.
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  explicit operator bool() const { return handle_; }

  template <class F>
  bool find(const char* symbol, F& function) const {
    function = handle_ ? reinterpret_cast<F>(dlsym(handle_, symbol)) : nullptr;
    return function != nullptr;
  }

 private:
  void* handle_;
};
}  // namespace dovetail::cpu
