// Shared by all functions of the library: they can be made to fail, need an initialised driver or a current
// context, and return a CUresult.
#pragma once
#include <new>
#include <string>

#include "driver/cuda_api.hpp"

namespace emulator {
// Why a call is refused. The text goes to stderr if DOVETAIL_CUDA_EMULATED_LOG=1.
struct Refusal {
  CUresult result;
  std::string why;
};
[[noreturn]] void refuse(CUresult result, std::string why);

// The preconditions of a call.
enum class Needs { nothing, driver, context };

// Throws Refusal if the call fails before it has begun. `function` is its name as programs write it.
void admit(const char* function, Needs);
CUresult report(const char* function, const Refusal&) noexcept;

template <class Body>
CUresult answer(const char* function, Needs needs, Body&& body) noexcept {
  try {
    admit(function, needs);
    body();
    return CUDA_SUCCESS;
  } catch (const Refusal& refusal) {
    return report(function, refusal);
  } catch (const std::bad_alloc&) {
    return report(function, {CUDA_ERROR_OUT_OF_MEMORY, "the host is out of memory"});
  }
}

// While a host function runs on this thread: it may not call the driver.
class InHostFunction {
 public:
  InHostFunction();
  ~InHostFunction();
};

// Requires the caller's pointer for a result.
template <class T>
T& place_for(T* out) {
  if (!out) refuse(CUDA_ERROR_INVALID_VALUE, "the place of an answer is null");
  return *out;
}
}  // namespace emulator
