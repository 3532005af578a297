// oneDNN's C functions, its one engine and one stream, and owners of its objects.
#pragma once
#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <mutex>

#include "dovetail/abi.h"

namespace dovetail::cpu::onednn {
// clang-format off
#define DOVETAIL_DNNL(X) \
  X(version) \
  X(engine_create) \
  X(stream_create) \
  X(set_max_cpu_isa) \
  X(get_effective_cpu_isa) \
  X(memory_desc_create_with_strides) \
  X(memory_desc_create_with_tag) \
  X(memory_desc_clone) \
  X(memory_desc_destroy) \
  X(memory_desc_get_size) \
  X(memory_desc_query) \
  X(primitive_attr_create) \
  X(primitive_attr_set_scratchpad_mode) \
  X(primitive_attr_set_post_ops) \
  X(post_ops_create) \
  X(post_ops_append_sum) \
  X(post_ops_destroy) \
  X(matmul_primitive_desc_create) \
  X(convolution_forward_primitive_desc_create) \
  X(reorder_primitive_desc_create) \
  X(primitive_desc_query) \
  X(primitive_desc_query_md) \
  X(primitive_desc_destroy) \
  X(primitive_create) \
  X(primitive_destroy) \
  X(primitive_execute) \
  X(memory_create) \
  X(memory_set_data_handle) \
  X(memory_destroy)
// clang-format on

// On a CPU a stream has no state of its own: all threads use one.
struct Dnnl {
#define X(name) decltype(&::dnnl_##name) name;
  DOVETAIL_DNNL(X)
#undef X
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_attr_t attributes, adding;  // adding: to what the result's memory holds
};
// Opened at first use; nullptr if it is absent or cannot be limited to the level of our kernels.
const Dnnl* dnnl();

// Locked while oneDNN creates something, because a forked child would inherit its primitive cache's lock as
// held. fork() waits for this lock.
std::mutex& making();

template <auto Destroy>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    (dnnl()->*Destroy)(p);
  }
};
using Desc = std::unique_ptr<dnnl_memory_desc, Deleter<&Dnnl::memory_desc_destroy>>;
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Deleter<&Dnnl::primitive_desc_destroy>>;
using Primitive = std::unique_ptr<dnnl_primitive, Deleter<&Dnnl::primitive_destroy>>;
using Memory = std::unique_ptr<dnnl_memory, Deleter<&Dnnl::memory_destroy>>;

// The object of one of oneDNN's creating functions; empty if it refuses.
template <class Owner, class Create, class... Arguments>
Owner make(Create create, const Arguments&... arguments) {
  const std::lock_guard<std::mutex> lock(making());
  typename Owner::pointer made = nullptr;
  return Owner(create(&made, arguments...) == dnnl_success ? made : nullptr);
}

// dnnl_data_type_undef if oneDNN has no such type, or none that we use.
dnnl_data_type_t data_type(DLDataType);
}  // namespace dovetail::cpu::onednn
