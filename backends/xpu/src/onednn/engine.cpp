// The engines of devices with their caches of primitives, and the streams.
#include "device/device.hpp"
#include "onednn/primitive.hpp"

namespace gpu::onednn {
Engine::Engine() = default;
Engine::~Engine() {
  primitives_.clear();
  if (handle_) dnnl()->engine_destroy(static_cast<dnnl_engine_t>(handle_));
}

bool Engine::start(const dvt_device& d) {
  if (started_) return handle_;
  started_ = true;
  dnnl_engine_t engine = nullptr;
  if (!dnnl() || dnnl()->sycl_interop_engine_create(&engine, &d.device, &d.context)) return false;
  handle_ = engine;
  return true;
}

PrimitiveRef Engine::find(const dvt_device& d, const Description& description) {
  {
    const std::lock_guard guard(mutex_);
    if (!start(d)) return nullptr;
  }
  return primitives_.get(description, [&] { return build(static_cast<dnnl_engine_t>(handle_), description); });
}

Stream::~Stream() {
  if (handle_) dnnl()->stream_destroy(static_cast<dnnl_stream_t>(handle_));
}

void* Stream::get(const Engine& engine, void* queue) {
  const std::lock_guard guard(mutex_);
  if (!handle_) {
    dnnl_stream_t made = nullptr;
    if (dnnl()->sycl_interop_stream_create(&made, static_cast<dnnl_engine_t>(engine.handle()), queue))
      return nullptr;
    handle_ = made;
  }
  return handle_;
}
}  // namespace gpu::onednn
