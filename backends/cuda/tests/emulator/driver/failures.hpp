// Failures set by DOVETAIL_CUDA_EMULATED_FAILURES, for example
//
//   cuMemAllocAsync=2@3               the third call answers 2, CUDA_ERROR_OUT_OF_MEMORY
//   cuMemAllocAsync=2@3-5             the third, fourth and fifth
//   cuStreamSynchronize=700@1+        the first answers 700, and so does every later call in its context, until
//   that is
//                                     reset; a function that needs no context, such as cuInit, fails from then on
//
// and several of them with commas between.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cuda_api.hpp"

namespace emulator {
struct Failure {
  CUresult result;
  uint64_t first, last;  // calls: 1 is the first
  bool lasting;
};

class Failures {
 public:
  static Failures& instance();

  // Counts a call; returns its failure, if one was set. A lasting failure is returned again only if no
  // context keeps it.
  std::optional<Failure> next(const char* function, bool kept_by_context);
  // Replaces the failures set before; calls are counted from now on. False if the text is invalid.
  bool ask(std::string_view text);

 private:
  struct Function {
    uint64_t calls = 0;
    std::vector<Failure> failures;
  };
  std::mutex mutex_;
  std::map<std::string, Function, std::less<>> functions_;
};
}  // namespace emulator
