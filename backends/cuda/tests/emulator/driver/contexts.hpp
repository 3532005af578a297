// Primary contexts, and each thread's current one.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "driver/cuda_api.hpp"

namespace emulator {
// The state of a context from its first retain until it is reset or released for good.
struct Life {
  explicit Life(int d) : device(d) {}

  const int device;
  std::atomic<CUresult> error = CUDA_SUCCESS;  // once there is one, every call returns it
  std::mutex mutex;                            // of what follows
  std::set<CUstream> streams;
  CUstream default_stream = nullptr;
  std::set<int> peers;

  // The first error stays. Its reason is always printed: no function returns it.
  void fail(CUresult result, const std::string& why);
};

std::shared_ptr<Life> current_life();  // nullptr if no context is current
std::shared_ptr<Life> require_life();  // throws Refusal there
void fail_device(int device, CUresult result, const std::string& why);
}  // namespace emulator

struct CUctx_st {
  int device = 0;
  unsigned retained = 0;
  std::shared_ptr<emulator::Life> life;  // nullptr: not active
};
