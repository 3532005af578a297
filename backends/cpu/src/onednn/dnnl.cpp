#include "onednn/dnnl.hpp"

#include <pthread.h>

#include <atomic>

#include "isa.hpp"
#include "library.hpp"
#include "onednn.hpp"

namespace dovetail::cpu::onednn {
namespace {
constinit std::mutex making_mutex;
[[maybe_unused]] const int fork_waits =
    pthread_atfork([] { making_mutex.lock(); }, [] { making_mutex.unlock(); }, [] { making_mutex.unlock(); });

// Generates no code beyond the level of our own kernels.
bool limit(const Dnnl& d) {
#if defined(__x86_64__)
  if (active_level() == Level::baseline) d.set_max_cpu_isa(dnnl_cpu_isa_sse41);
  if (active_level() == Level::avx2) d.set_max_cpu_isa(dnnl_cpu_isa_avx2);
  if (active_level() == Level::avx512 && !may_use_tiles()) d.set_max_cpu_isa(dnnl_cpu_isa_avx512_core_fp16);
  return true;
#else
  // For armv8-a oneDNN only has reference code, and its detection of bf16 and i8mm cannot be limited.
  return active_level() != Level::baseline && d.version()->major == 3 && d.version()->minor >= 4;
#endif
}

// We provide the scratch memory: a primitive's own would be shared by the threads that run it.
bool make_attributes(const Dnnl& d, dnnl_primitive_attr_t& made) {
  return d.primitive_attr_create(&made) == dnnl_success &&
         d.primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user) == dnnl_success;
}
bool make_adding(const Dnnl& d, dnnl_primitive_attr_t& made) {
  dnnl_post_ops_t sum = nullptr;
  if (!make_attributes(d, made) || d.post_ops_create(&sum)) return false;
  const bool complete = d.post_ops_append_sum(sum, 1, 0, dnnl_data_type_undef) == dnnl_success &&
                        d.primitive_attr_set_post_ops(made, sum) == dnnl_success;
  d.post_ops_destroy(sum);
  return complete;
}

bool open(Dnnl& d) {
  const Library library("libdovetail_dnnl.so.3");
#define X(name) \
  if (!library.find("dnnl_" #name, d.name)) return false;
  DOVETAIL_DNNL(X)
#undef X
  return limit(d) && d.engine_create(&d.engine, dnnl_cpu, 0) == dnnl_success &&
         d.stream_create(&d.stream, d.engine, dnnl_stream_default_flags) == dnnl_success &&
         make_attributes(d, d.attributes) && make_adding(d, d.adding);
}
}  // namespace

std::mutex& making() { return making_mutex; }

const Dnnl* dnnl() {
  enum State { unknown, absent, usable };
  static std::atomic<State> state{unknown};  // not a local static: fork() would not wait for its initialisation
  static Dnnl table;
  if (state.load(std::memory_order_acquire) == unknown) {
    const std::lock_guard<std::mutex> lock(making_mutex);
    if (state.load(std::memory_order_relaxed) == unknown)
      state.store(open(table) ? usable : absent, std::memory_order_release);
  }
  return state.load(std::memory_order_acquire) == usable ? &table : nullptr;
}

dnnl_data_type_t data_type(DLDataType t) {
  if (t.code == DVT_FLOAT && t.bits == 32) return dnnl_f32;
  if (t.code == DVT_FLOAT && t.bits == 16) return dnnl_f16;
  if (t.code == DVT_BFLOAT && t.bits == 16) return dnnl_bf16;
  if (t.code == DVT_INT && t.bits == 32) return dnnl_s32;
  if (t.code == DVT_INT && t.bits == 8) return dnnl_s8;
  if (t.code == DVT_UINT && t.bits == 8) return dnnl_u8;
  return dnnl_data_type_undef;
}

#if defined(__x86_64__)
namespace {
bool generates(dnnl_cpu_isa_t isa) {
  return active_level() == Level::avx512 && dnnl() && (dnnl()->get_effective_cpu_isa() & isa) == isa;
}
}  // namespace
#endif

bool fast_float16() {
#if defined(__x86_64__)
  return generates(dnnl_cpu_isa_avx512_core_fp16);
#else
  return false;
#endif
}

bool fast_int8() {
#if defined(__x86_64__)
  return generates(dnnl_cpu_isa_avx512_core_vnni);  // else pairs of products are added up in int16, and saturate
#else
  // oneDNN does not detect these instructions itself.
  return features().sve_int8 && active_level() == Level::neon_bf16 && dnnl() && dnnl()->version()->minor >= 12;
#endif
}

bool fast_bfloat16() {
#if defined(__x86_64__)
  return may_multiply_bfloat16() && generates(dnnl_cpu_isa_avx512_core_bf16);
#else
  return may_multiply_bfloat16() && dnnl() && dnnl()->version()->minor >= 12;
#endif
}
}  // namespace dovetail::cpu::onednn
