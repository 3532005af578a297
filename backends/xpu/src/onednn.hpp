// oneDNN on a device's own queues. The library is opened when a device is first asked for a product; everything of
// it is reached through that handle, so that another oneDNN in the process (dovetail-cpu's) neither sees nor is
// seen.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

#include "dovetail/backend.hpp"
#include "gpu/lru_cache.hpp"

namespace gpu::onednn {
inline constexpr int most_axes = 5;

inline bool serves(DLDataType t) { return t.code == DVT_BFLOAT || (t.code == DVT_FLOAT && t.bits <= 32); }

struct Operand {  // strides in elements
  int64_t size[most_axes], stride[most_axes];
  DLDataType type;
  int32_t axes;  // 0: there is no such operand
};
enum class Kind : uint64_t { matmul, convolution };
// All that an implementation depends on: the key of a cache, so it holds no pointers.
struct Description {
  Kind kind;
  // Has oneDNN a matrix of weights, or images in and out, in the layout that it likes best? Otherwise it gets
  // matrices as they lie, images row-major; a convolution's weights it always has as it likes. What lies otherwise
  // is reordered.
  uint64_t any_weights, any_images;
  uint64_t in_float32;  // is a convolution of 16-bit floats computed as one of float32?
  Operand in, weights, bias, out;
  int64_t step[2], padding[2], dilation[2];  // of a convolution
};
static_assert(std::has_unique_object_representations_v<Description>);

struct Arguments {
  const void *in, *weights, *bias;  // bias: nullptr where the description has none
  void* out;
  const void* packed = nullptr;  // the weights in the primitive's own layout: `weights` is not read then
};

Arguments arguments(const dvt_call*);  // of a call (in, weights, bias)

// Operands begin on a cache line, as oneDNN's kernels for GPUs expect (by a row's align_log2 the host would copy),
// and the call is not captured: work on the CPU device frees itself when it has run once.
bool takes(dvt_device*, const dvt_call*, const Arguments&);

class Primitive;
using PrimitiveRef = std::shared_ptr<const Primitive>;

// The engine of one device, and its primitives: those that were used last.
class Engine {
 public:
  Engine();
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // nullptr where oneDNN is absent or has no more than a reference implementation.
  PrimitiveRef find(const dvt_device&, const Description&);
  void* handle() const { return handle_; }  // dnnl_engine_t

 private:
  bool start(const dvt_device&);

  std::mutex mutex_;
  bool started_ = false;
  void* handle_ = nullptr;
  LruCache<Description, PrimitiveRef> primitives_;
};

// A queue as oneDNN's stream, made when first needed. Calls on one stream never overlap.
class Stream {
 public:
  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* get(const Engine&, void* queue);  // dnnl_stream_t; nullptr where there is no memory

 private:
  std::mutex mutex_;  // the device's own stream has many callers
  void* handle_ = nullptr;
};

// The bytes of workspace that a call needs; fewer with packed weights.
uint64_t workspace(const Primitive&, bool packed = false);
dvt_status execute(dvt_device*, const dvt_call*, const Primitive&, const Arguments&);

// Weights (operand 1) in the primitive's own layout: pack_size and pack of a row. There is none where the primitive
// is absent or takes them as they lie.
dvt_status pack_size(const dvt_call*, const PrimitiveRef&, uint64_t* size, uint64_t* layout);
dvt_status pack(dvt_device*, const dvt_call*, const PrimitiveRef&, const dvt_packed*);
}  // namespace gpu::onednn
