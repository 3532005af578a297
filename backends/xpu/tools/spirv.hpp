// What the build has to know of a SPIR-V module: its kernels, what they need of a device, how much local memory.
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
