// The engines of devices with their caches of primitives, and the streams.
#include <cstring>

#include "device/device.hpp"
#include "onednn/primitive.hpp"

namespace gpu::onednn {
Engine::Engine() = default;
Engine::~Engine() {
  places_.clear(), recent_.clear();
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

size_t Engine::Hash::operator()(const Description& d) const {
  uint64_t words[sizeof d / 8], h = 0;
  std::memcpy(words, &d, sizeof d);
  for (const uint64_t w : words) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return h;
}
bool Engine::Equal::operator()(const Description& a, const Description& b) const {
  return !std::memcmp(&a, &b, sizeof a);
}

PrimitiveRef Engine::find(const dvt_device& d, const Description& description) {
  constexpr size_t limit = 1024;
  const std::lock_guard guard(mutex_);
  if (!start(d)) return nullptr;
  if (const auto it = places_.find(description); it != places_.end()) {
    recent_.splice(recent_.begin(), recent_, it->second);
    return it->second->second;
  }
  recent_.emplace_front(description, build(static_cast<dnnl_engine_t>(handle_), description));
  places_.emplace(description, recent_.begin());
  if (recent_.size() > limit) {
    places_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return recent_.front().second;
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
