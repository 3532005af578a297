// The emulated GPUs, set by the environment: DOVETAIL_CUDA_EMULATED_DEVICES=n of
// DOVETAIL_CUDA_EMULATED_CAPABILITY=9.0 (8.0, 8.9, 9.0, 10.0 or 12.0) with
// DOVETAIL_CUDA_EMULATED_MEMORY=bytes each. DOVETAIL_CUDA_EMULATED_PEERS=none: they cannot reach each other's
// memory; lossy: they report that they can, but direct copies do not arrive.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/cuda_api.hpp"

namespace emulator {
struct Model {
  int major, minor;
  const char* name;
  int multiprocessors;
  int shared_per_multiprocessor;
  int l2_bytes;
  int clock_khz, memory_clock_khz, bus_bits;

  // The driver reserves a kilobyte of each multiprocessor's shared memory for each block.
  int most_shared() const { return shared_per_multiprocessor - 1024; }
};
inline constexpr int shared_unless_raised = 48 << 10;

bool is_initialised();
bool is_deinitialised();  // since the process's exit handlers run
const Model& model();
size_t memory_of_device();
int count_devices();
void check_device(CUdevice);  // throws Refusal
bool are_peers(CUdevice, CUdevice);
bool loses_direct_copies();
}  // namespace emulator
