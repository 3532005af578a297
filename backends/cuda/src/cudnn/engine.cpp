#include "cudnn/engine.hpp"

#include "cudnn/frontend.hpp"
#include "cudnn/library.hpp"
#include "device/errors.hpp"
#include "launch.hpp"

namespace gpu::cudnn {
namespace {
void expect(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuDNN: ") + call + ": " + functions().cudnnGetErrorString(status));
}

bool is_available() {
  static const bool available = !is_emulated() && is_usable(missing());
  return available;
}
}  // namespace

const char* unavailable() {
  if (is_available()) return nullptr;
  return is_emulated() ? "cuDNN does not run on the emulated driver"
                       : "cuDNN is missing or cannot be used: pip install -U 'dovetail-cuda[cu13]'";
}

// One of the engine's handles while it is in use.
class Engine::Handle {
 public:
  explicit Handle(Engine& engine) : engine_(engine) {
    {
      const std::lock_guard guard(engine.mutex_);
      if (!engine.idle_.empty()) {
        handle_ = static_cast<cudnnHandle_t>(engine.idle_.back());
        engine.idle_.pop_back();
      }
    }
    if (!handle_) expect(functions().cudnnCreate(&handle_), "cudnnCreate");
  }
  ~Handle() {
    const std::lock_guard guard(engine_.mutex_);
    engine_.idle_.push_back(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  Engine& engine_;
  cudnnHandle_t handle_ = nullptr;
};

PlanRef Engine::plan_of(dvt_device* d, auto& plans, const auto& graph) {
  if (!is_available()) return nullptr;
  return plans.get(graph, [&]() -> PlanRef {
    PlanRef plan;
    (void)guarded(d, [&] {
      const Handle handle(*this);
      const Planned made = make_plan({handle.get(), "", d->capability}, graph);
      if (!made.plan) dvt::host->log(dvt::host, 0, ("cuDNN has no plan: " + made.refusal).c_str());
      plan = made.plan;
      return DVT_OK;
    });
    return plan;
  });
}

PlanRef Engine::plan(dvt_device* d, const AttentionGraph& graph) { return plan_of(d, attention_, graph); }
PlanRef Engine::plan(dvt_device* d, const ConvolutionGraph& graph) { return plan_of(d, convolution_, graph); }

dvt_status Engine::run(dvt_device* d, const dvt_call* c, const Plan& plan, const Pointers& pointers,
                       void* workspace) {
  return guarded(d, [&]() -> dvt_status {
    const Handle handle(*this);
    expect(functions().cudnnSetStream(handle.get(), stream_of(d, c->stream).handle), "cudnnSetStream");
    const std::string refusal = execute(plan, handle.get(), pointers, workspace);
    if (!refusal.empty()) return DVT_FAIL(DVT_INTERNAL, "cuDNN: %s", refusal.c_str());
    return finish(d, c);
  });
}

PlanRef plan(dvt_device* d, const AttentionGraph& graph) { return d->cudnn.plan(d, graph); }
PlanRef plan(dvt_device* d, const ConvolutionGraph& graph) { return d->cudnn.plan(d, graph); }
dvt_status run(dvt_device* d, const dvt_call* c, const Plan& plan, const Pointers& pointers, void* workspace) {
  return d->cudnn.run(d, c, plan, pointers, workspace);
}
}  // namespace gpu::cudnn
