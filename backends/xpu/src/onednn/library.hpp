// oneDNN's C functions and owners of what they make.
#pragma once
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_sycl.h>

#include <memory>

namespace gpu::onednn {
// clang-format off
#define DOVETAIL_DNNL(X) \
  X(sycl_interop_engine_create) \
  X(sycl_interop_stream_create) \
  X(sycl_interop_memory_create) \
  X(sycl_interop_primitive_execute) \
  X(engine_destroy) \
  X(stream_destroy) \
  X(memory_desc_create_with_strides) \
  X(memory_desc_create_with_tag) \
  X(memory_desc_clone) \
  X(memory_desc_destroy) \
  X(memory_desc_equal) \
  X(memory_desc_get_size) \
  X(memory_desc_get_blob) \
  X(primitive_attr_create) \
  X(primitive_attr_set_scratchpad_mode) \
  X(primitive_attr_destroy) \
  X(matmul_primitive_desc_create) \
  X(convolution_forward_primitive_desc_create) \
  X(reorder_primitive_desc_create) \
  X(primitive_desc_query) \
  X(primitive_desc_query_md) \
  X(primitive_desc_destroy) \
  X(primitive_create) \
  X(primitive_destroy) \
  X(memory_destroy)
// clang-format on

struct Library {
#define X(name) decltype(&::dnnl_##name) name;
  DOVETAIL_DNNL(X)
#undef X
};
// Opened when first asked for; nullptr where it cannot be.
const Library* dnnl();

template <auto Destroy>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    (dnnl()->*Destroy)(p);
  }
};
using MemoryDesc = std::unique_ptr<dnnl_memory_desc, Deleter<&Library::memory_desc_destroy>>;
using Attributes = std::unique_ptr<dnnl_primitive_attr, Deleter<&Library::primitive_attr_destroy>>;
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Deleter<&Library::primitive_desc_destroy>>;
using PrimitiveHandle = std::unique_ptr<dnnl_primitive, Deleter<&Library::primitive_destroy>>;
using Memory = std::unique_ptr<dnnl_memory, Deleter<&Library::memory_destroy>>;

// The object that a creating function of oneDNN returns; empty if it fails.
template <class Owner, class Create, class... Arguments>
Owner make(Create create, const Arguments&... arguments) {
  typename Owner::pointer made = nullptr;
  return Owner(create(&made, arguments...) == dnnl_success ? made : nullptr);
}
}  // namespace gpu::onednn
