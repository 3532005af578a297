// The facts about a SPIR-V module that the build needs: its kernels, their requirements, their local memory.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spirv {
struct Module {
  std::vector<std::string> kernels;
  bool fp16 = false, fp64 = false;
  uint64_t local_bytes = 0;
};

// Throws std::runtime_error where it is not SPIR-V.
Module parse(std::span<const uint32_t> words);
}  // namespace spirv
