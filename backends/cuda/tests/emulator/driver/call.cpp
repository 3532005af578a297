#include "driver/call.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "driver/contexts.hpp"
#include "driver/devices.hpp"
#include "driver/failures.hpp"

namespace emulator {
namespace {
thread_local bool in_host_function = false;

bool logs() {
  static const bool asked = [] {
    const char* text = std::getenv("DOVETAIL_CUDA_EMULATED_LOG");
    return text && !std::strcmp(text, "1");
  }();
  return asked;
}
}  // namespace

void refuse(CUresult result, std::string why) { throw Refusal{result, std::move(why)}; }

void admit(const char* function, Needs needs) {
  const auto life = needs == Needs::context ? current_life() : nullptr;
  if (const auto failure = Failures::instance().next(function, life != nullptr)) {
    if (failure->lasting && life) life->fail(failure->result, std::string("made to by a failure of ") + function);
    refuse(failure->result, "it was made to fail");
  }
  if (needs == Needs::nothing) return;
  if (in_host_function) refuse(CUDA_ERROR_NOT_PERMITTED, "host functions may not call the driver");
  if (is_deinitialised()) refuse(CUDA_ERROR_DEINITIALIZED, "the process ends");
  if (!is_initialised()) refuse(CUDA_ERROR_NOT_INITIALIZED, "expected cuInit before");
  if (needs == Needs::context)
    if (const CUresult result = require_life()->error) refuse(result, "the context has failed before");
}

CUresult report(const char* function, const Refusal& refusal) noexcept {
  if (logs())
    std::fprintf(stderr, "emulated %s: error %d: %s\n", function, int(refusal.result), refusal.why.c_str());
  return refusal.result;
}

InHostFunction::InHostFunction() { in_host_function = true; }
InHostFunction::~InHostFunction() { in_host_function = false; }
}  // namespace emulator
