#include "onednn.hpp"

#if !defined(DOVETAIL_CPU_HAS_ONEDNN)
namespace dovetail::cpu::onednn {
bool fast_bfloat16() { return false; }
bool multiply(const Product&, const void*, const void*, const float*, void*) { return false; }
}  // namespace dovetail::cpu::onednn
#else
#include <oneapi/dnnl/dnnl.h>

#include <cstring>
#include <memory>
#include <unordered_map>

#include "isa.hpp"
#include "library.hpp"
#include "scratch.hpp"

namespace dovetail::cpu::onednn {
namespace {
// clang-format off
#define DOVETAIL_DNNL(X) \
  X(engine_create) \
  X(stream_create) \
  X(set_max_cpu_isa) \
  X(get_effective_cpu_isa) \
  X(memory_desc_create_with_strides) \
  X(memory_desc_destroy) \
  X(memory_desc_get_size) \
  X(primitive_attr_create) \
  X(primitive_attr_set_scratchpad_mode) \
  X(matmul_primitive_desc_create) \
  X(primitive_desc_query_md) \
  X(primitive_desc_destroy) \
  X(primitive_create) \
  X(primitive_destroy) \
  X(primitive_execute) \
  X(memory_create) \
  X(memory_set_data_handle) \
  X(memory_destroy)
// clang-format on

// The library's functions, its one engine and its one stream, which on a CPU has no state of its own.
struct Dnnl {
#define X(name) decltype(&::dnnl_##name) name;
  DOVETAIL_DNNL(X)
#undef X
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_attr_t attributes;
};

bool open(Dnnl& d) {
  const Library library("libdovetail_dnnl.so.3");
#define X(name) \
  if (!library.find("dnnl_" #name, d.name)) return false;
  DOVETAIL_DNNL(X)
#undef X
#if defined(__x86_64__)
  if (active_level() == Level::baseline) d.set_max_cpu_isa(dnnl_cpu_isa_sse41);
  if (active_level() == Level::avx2) d.set_max_cpu_isa(dnnl_cpu_isa_avx2);
#endif
  // Scratch memory comes from us: a primitive's own would be shared by the threads that run it.
  return d.engine_create(&d.engine, dnnl_cpu, 0) == dnnl_success &&
         d.stream_create(&d.stream, d.engine, dnnl_stream_default_flags) == dnnl_success &&
         d.primitive_attr_create(&d.attributes) == dnnl_success &&
         d.primitive_attr_set_scratchpad_mode(d.attributes, dnnl_scratchpad_mode_user) == dnnl_success;
}

const Dnnl* dnnl() {
  static Dnnl table;
  static const bool usable = open(table);
  return usable ? &table : nullptr;
}

bool data_type(DLDataType t, dnnl_data_type_t& out) {
  if (t.code == DVT_FLOAT && t.bits == 32) return out = dnnl_f32, true;
  if (t.code == DVT_BFLOAT && t.bits == 16) return out = dnnl_bf16, true;
  return false;
}

template <auto Destroy>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    (dnnl()->*Destroy)(p);
  }
};
using Desc = std::unique_ptr<dnnl_memory_desc, Deleter<&Dnnl::memory_desc_destroy> >;
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Deleter<&Dnnl::primitive_desc_destroy> >;
using Primitive = std::unique_ptr<dnnl_primitive, Deleter<&Dnnl::primitive_destroy> >;
using Memory = std::unique_ptr<dnnl_memory, Deleter<&Dnnl::memory_destroy> >;

Desc matrix(int64_t rows, int64_t columns, int64_t row, int64_t column, dnnl_data_type_t type) {
  const dnnl_dims_t dims = {rows, columns}, strides = {row, column};
  dnnl_memory_desc_t desc = nullptr;
  dnnl()->memory_desc_create_with_strides(&desc, 2, dims, type, strides);
  return Desc(desc);
}

// A primitive of the calling thread with its arguments. oneDNN shares the generated code between threads.
struct Executable {
  Primitive primitive;
  Memory arguments[5];
  int kinds[5];
  size_t scratch_size = 0;
  bool usable = false;

  bool add(int i, int kind, const_dnnl_memory_desc_t desc) {
    dnnl_memory_t memory = nullptr;
    const dnnl_status_t s = dnnl()->memory_create(&memory, desc, dnnl()->engine, DNNL_MEMORY_NONE);
    arguments[i].reset(memory), kinds[i] = kind;
    return s == dnnl_success;
  }
};

bool build(Executable& e, const Product& p) {
  const Dnnl& d = *dnnl();
  dnnl_data_type_t in, out;
  if (!data_type(p.in, in) || !data_type(p.out, out)) return false;
  const Desc a = matrix(p.m, p.k, p.a_row, p.a_column, in), b = matrix(p.k, p.n, p.b_row, p.b_column, in),
             c = matrix(p.m, p.n, p.c_row, 1, out), bias = p.bias ? matrix(1, p.n, p.n, 1, dnnl_f32) : nullptr;
  if (!a || !b || !c || (p.bias && !bias)) return false;
  dnnl_primitive_desc_t raw = nullptr;
  if (d.matmul_primitive_desc_create(&raw, d.engine, a.get(), b.get(), bias.get(), c.get(), d.attributes))
    return false;
  const PrimitiveDesc desc(raw);
  dnnl_primitive_t primitive = nullptr;
  if (d.primitive_create(&primitive, desc.get())) return false;
  e.primitive.reset(primitive);
  const_dnnl_memory_desc_t scratch_desc = d.primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  e.scratch_size = d.memory_desc_get_size(scratch_desc);
  return e.add(0, DNNL_ARG_SRC, a.get()) && e.add(1, DNNL_ARG_WEIGHTS, b.get()) &&
         e.add(2, DNNL_ARG_DST, c.get()) && e.add(3, DNNL_ARG_SCRATCHPAD, scratch_desc) &&
         (!p.bias || e.add(4, DNNL_ARG_BIAS, bias.get()));
}

struct Hash {
  size_t operator()(const Product& p) const {
    uint64_t words[sizeof p / 8], h = 0;
    std::memcpy(words, &p, sizeof p);
    for (uint64_t w : words) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
  }
};
struct Equal {
  bool operator()(const Product& a, const Product& b) const { return !std::memcmp(&a, &b, sizeof a); }
};
static_assert(std::has_unique_object_representations_v<Product>);

// Per thread, so that nothing waits for a lock and a forked child finds its own in order.
Executable& executable(const Product& p) {
  constexpr size_t limit = 128;
  static thread_local std::unordered_map<Product, Executable, Hash, Equal> cache;
  const auto found = cache.find(p);
  if (found != cache.end()) [[likely]]
    return found->second;
  if (cache.size() >= limit) cache.clear();
  Executable& e = cache[p];
  e.usable = build(e, p);
  return e;
}
}  // namespace

bool fast_bfloat16() {
#if defined(__x86_64__)
  static const bool fast = features().bf16_products && active_level() == Level::avx512 && dnnl() &&
                           dnnl()->get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core_bf16;
  return fast;
#else
  return false;
#endif
}

bool multiply(const Product& p, const void* a, const void* b, const float* bias, void* c) {
  const Dnnl* d = dnnl();
  if (!d) return false;
  Executable& e = executable(p);
  if (!e.usable) return false;
  void* const room = e.scratch_size ? scratch(Scratch::onednn, e.scratch_size) : nullptr;
  if (e.scratch_size && !room) return false;
  void* const data[] = {const_cast<void*>(a), const_cast<void*>(b), c, room, const_cast<float*>(bias)};
  dnnl_exec_arg_t args[5];
  const int n = p.bias ? 5 : 4;
  for (int i = 0; i < n; ++i) {
    d->memory_set_data_handle(e.arguments[i].get(), data[i]);
    args[i] = {e.kinds[i], e.arguments[i].get()};
  }
  return d->primitive_execute(e.primitive.get(), d->stream, n, args) == dnnl_success;
}
}  // namespace dovetail::cpu::onednn
#endif
