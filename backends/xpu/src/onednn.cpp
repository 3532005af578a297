#include "onednn.hpp"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_sycl.h>

#include <cstring>
#include <filesystem>

#include "device/errors.hpp"
#include "launch.hpp"

namespace xpu::onednn {
namespace {
// clang-format off
#define DOVETAIL_DNNL(X) \
  X(sycl_interop_engine_create) \
  X(sycl_interop_stream_create) \
  X(sycl_interop_memory_create) \
  X(sycl_interop_primitive_execute) \
  X(engine_destroy) \
  X(stream_destroy) \
  X(memory_desc_create_with_strides) \
  X(memory_desc_clone) \
  X(memory_desc_destroy) \
  X(memory_desc_get_size) \
  X(primitive_attr_create) \
  X(primitive_attr_set_scratchpad_mode) \
  X(primitive_attr_destroy) \
  X(matmul_primitive_desc_create) \
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

// oneDNN's wheel puts it beside SYCL's runtime. Local: its symbols serve nobody else.
bool open(Library& library) {
  Dl_info runtime;
  if (!dladdr(reinterpret_cast<void*>(&sycl::platform::get_platforms), &runtime)) return false;
  const auto path = std::filesystem::path(runtime.dli_fname).replace_filename("libdnnl.so.3");
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    dvt::host->log(dvt::host, 2, dlerror());
    return false;
  }
#define X(name)                                                                          \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, "dnnl_" #name)); \
  if (!library.name) return false;
  DOVETAIL_DNNL(X)
#undef X
  return true;
}

const Library* dnnl() {
  static Library library;
  static const bool usable = open(library);
  return usable ? &library : nullptr;
}

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

// What a creating function of oneDNN's makes; empty where it refuses.
template <class Owner, class Create, class... Arguments>
Owner make(Create create, const Arguments&... arguments) {
  typename Owner::pointer made = nullptr;
  return Owner(create(&made, arguments...) == dnnl_success ? made : nullptr);
}

dnnl_data_type_t data_type(DLDataType t) {
  if (t.code == DVT_BFLOAT) return dnnl_bf16;
  return t.bits == 16 ? dnnl_f16 : dnnl_f32;
}

MemoryDesc describe(const Operand& o) {
  if (!o.axes) return nullptr;
  return make<MemoryDesc>(dnnl()->memory_desc_create_with_strides, int(o.axes), o.size, data_type(o.type),
                          o.stride);
}

Attributes attributes() {
  auto made = make<Attributes>(dnnl()->primitive_attr_create);
  // Scratch memory comes with each call: a primitive's own would be shared by the streams that run it.
  if (made && dnnl()->primitive_attr_set_scratchpad_mode(made.get(), dnnl_scratchpad_mode_user)) return nullptr;
  return made;
}
}  // namespace

class Primitive {
 public:
  static PrimitiveRef build(dnnl_engine_t engine, const Description& d) {
    auto p = std::make_shared<Primitive>();
    p->in = describe(d.in), p->weights = describe(d.weights), p->bias = describe(d.bias), p->out = describe(d.out);
    if (!p->in || !p->weights || !p->out || (d.bias.axes && !p->bias)) return nullptr;
    const PrimitiveDesc desc = matmul(engine, *p);
    const char* name = "";
    if (!desc || dnnl()->primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name)) return nullptr;
    if (std::strstr(name, "ref")) return nullptr;  // plain loops
    p->primitive = make<PrimitiveHandle>(dnnl()->primitive_create, const_dnnl_primitive_desc_t(desc.get()));
    const_dnnl_memory_desc_t scratch = dnnl()->primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
    p->scratch = make<MemoryDesc>(dnnl()->memory_desc_clone, scratch);
    if (!p->primitive || !p->scratch) return nullptr;
    p->scratch_bytes = dnnl()->memory_desc_get_size(scratch);
    return p;
  }

  MemoryDesc in, weights, bias, out, scratch;
  PrimitiveHandle primitive;
  size_t scratch_bytes = 0;

 private:
  static PrimitiveDesc matmul(dnnl_engine_t engine, const Primitive& p) {
    const Attributes with = attributes();
    if (!with) return nullptr;
    return make<PrimitiveDesc>(dnnl()->matmul_primitive_desc_create, engine, p.in.get(), p.weights.get(),
                               p.bias.get(), p.out.get(), with.get());
  }
};

bool are_aligned(const Arguments& a) {
  constexpr uintptr_t cache_line = 64;
  const uintptr_t all = uintptr_t(a.in) | uintptr_t(a.weights) | uintptr_t(a.bias) | uintptr_t(a.out);
  return all % cache_line == 0;
}

uint64_t workspace(const Primitive& p) { return p.scratch_bytes; }

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
  recent_.emplace_front(description, Primitive::build(static_cast<dnnl_engine_t>(handle_), description));
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

dvt_status execute(dvt_device* d, const dvt_call* c, const Primitive& p, const Arguments& a) {
  return guarded(d, [&]() -> dvt_status {
    dvt_stream& stream = stream_of(d, c->stream);
    const auto engine = static_cast<dnnl_engine_t>(d->onednn.handle());
    const auto queue = static_cast<dnnl_stream_t>(stream.onednn->get(d->onednn, &stream.queue));
    if (!queue) return DVT_OOM;
    if (c->workspace_size < p.scratch_bytes)
      return DVT_FAIL(DVT_INTERNAL, "oneDNN: a workspace of %llu bytes: expected %zu",
                      (unsigned long long)c->workspace_size, p.scratch_bytes);
    Memory memories[5];
    dnnl_exec_arg_t list[5];
    int n = 0;
    const auto add = [&](int kind, const MemoryDesc& desc, const void* data) {
      if (!desc) return true;
      memories[n] = make<Memory>(dnnl()->sycl_interop_memory_create, const_dnnl_memory_desc_t(desc.get()), engine,
                                 dnnl_sycl_interop_usm, const_cast<void*>(data));
      list[n] = {kind, memories[n].get()};
      return bool(memories[n++]);
    };
    if (!add(DNNL_ARG_SRC, p.in, a.in) || !add(DNNL_ARG_WEIGHTS, p.weights, a.weights) ||
        !add(DNNL_ARG_BIAS, p.bias, a.bias) || !add(DNNL_ARG_DST, p.out, a.out) ||
        !add(DNNL_ARG_SCRATCHPAD, p.scratch, c->workspace))
      return DVT_OOM;
    // It keeps the primitive and the memories until it is done with them.
    if (const dnnl_status_t s =
            dnnl()->sycl_interop_primitive_execute(p.primitive.get(), queue, n, list, nullptr, nullptr))
      return DVT_FAIL(s == dnnl_out_of_memory ? DVT_OOM : DVT_INTERNAL, "oneDNN: status %d", int(s));
    return finish(d, c);
  });
}
}  // namespace xpu::onednn
