// Primary contexts, and which of them is current in a thread.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "driver/cuda_api.hpp"

namespace emulator {
// What a context has from the first time that it is retained until it is reset or released for good.
struct Life {
  explicit Life(int d) : device(d) {}

  const int device;
  std::atomic<CUresult> error = CUDA_SUCCESS;  // once there is one, every call answers it
  std::mutex mutex;                            // of what follows
  std::set<CUstream> streams;
  CUstream default_stream = nullptr;
  std::set<int> peers;

  // The first error stays. Its reason is always reported: no function returns it.
  void fail(CUresult result, const std::string& why);
};

std::shared_ptr<Life> current_life();  // nullptr where no context is current
std::shared_ptr<Life> require_life();  // throws Refusal there
void fail_device(int device, CUresult result, const std::string& why);
}  // namespace emulator

struct CUctx_st {
  int device = 0;
  unsigned retained = 0;
  std::shared_ptr<emulator::Life> life;  // nullptr: not active
};
