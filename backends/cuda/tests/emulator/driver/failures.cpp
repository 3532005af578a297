#include "driver/failures.hpp"

#include <dlfcn.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace emulator {
namespace {
// Whether there is such a function here. Programs use its name without cuda.h's version suffix.
bool is_function(const std::string& name) {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&is_function), &self)) return false;
  void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return false;
  bool found = false;
  for (const char* suffix : {"", "_v2", "_v3", "WithFlags"})
    found = found || dlsym(library, (name + suffix).c_str());
  dlclose(library);
  return found;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(size_t(end - text.data()));
  return error == std::errc();
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}
}  // namespace

Failures& Failures::instance() {
  static Failures& one = *[] {
    auto* failures = new Failures;
    const char* text = std::getenv("DOVETAIL_CUDA_EMULATED_FAILURES");
    if (text && !failures->ask(text)) {
      std::fprintf(stderr, "DOVETAIL_CUDA_EMULATED_FAILURES=%s: expected function=result@call, call- or call+\n",
                   text);
      std::abort();
    }
    return failures;
  }();
  return one;
}

std::optional<Failure> Failures::next(const char* function, bool kept_by_context) {
  const std::lock_guard guard(mutex_);
  const auto it = functions_.find(std::string_view(function));
  if (it == functions_.end()) return {};
  const uint64_t call = ++it->second.calls;
  for (const Failure& f : it->second.failures)
    if (call >= f.first && (call <= f.last || (f.lasting && !kept_by_context))) return f;
  return {};
}

bool Failures::ask(std::string_view text) {
  decltype(functions_) asked;
  while (!text.empty()) {
    const std::string name(text.substr(0, text.find('=')));
    text.remove_prefix(name.size());
    Failure failure{};
    int result = 0;
    if (!is_function(name) || !take(text, '=') || !take_number(text, result) || !take(text, '@') ||
        !take_number(text, failure.first))
      return false;
    failure.last = failure.first;
    if (take(text, '-') && !take_number(text, failure.last)) return false;
    failure.result = CUresult(result);
    failure.lasting = take(text, '+');
    if (!text.empty() && !take(text, ',')) return false;
    asked[name].failures.push_back(failure);
  }
  const std::lock_guard guard(mutex_);
  functions_ = std::move(asked);
  return true;
}
}  // namespace emulator

// For programs that change failures while they run; and a symbol that distinguishes this libcuda from
// NVIDIA's.
extern "C" __attribute__((visibility("default"))) int dovetail_cuda_emulator(const char* failures) {
  return emulator::Failures::instance().ask(failures) ? 0 : -1;
}
