// cuDNN on one device: its handles, and the plans that were used last.
#pragma once
#include <mutex>
#include <vector>

#include "cudnn/graphs.hpp"
#include "gpu/lru_cache.hpp"

namespace gpu::cudnn {
// Why no call can be served; nullptr where some can.
const char* unavailable();

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  PlanRef plan(dvt_device*, const AttentionGraph&);
  PlanRef plan(dvt_device*, const ConvolutionGraph&);
  dvt_status run(dvt_device*, const dvt_call*, const Plan&, const Pointers&, void* workspace);

 private:
  class Handle;
  PlanRef plan_of(dvt_device*, auto& plans, const auto& graph);

  std::mutex mutex_;
  std::vector<void*> idle_;  // cudnnHandle_t: one works for one thread at a time
  LruCache<AttentionGraph, PlanRef> attention_;
  LruCache<ConvolutionGraph, PlanRef> convolution_;
};
}  // namespace gpu::cudnn
