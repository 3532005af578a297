// The device: host memory, and every function is synchronous.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "autotune.hpp"
#include "compile/compiler.hpp"
#include "dovetail/backend.hpp"
#include "isa.hpp"
#include "linalg/rows.hpp"
#include "system/system.hpp"
#include "table.hpp"
#if defined(DOVETAIL_CPU_HAS_ONEDNN)
#include <oneapi/dnnl/dnnl_version.h>
#endif

#ifndef DOVETAIL_CPU_VERSION
#define DOVETAIL_CPU_VERSION "0.0.0"
#endif

struct dvt_device {};

namespace dovetail::cpu {
namespace {
dvt_device device;
Level level = Level::none;
char choice_error[512];
constexpr std::align_val_t alignment{64};

dvt_status device_count(uint32_t* n) {
  *n = 0;
  if (level == Level::none) return DVT_FAIL(DVT_INVALID, "%s", choice_error);
  *n = 1;
  return DVT_OK;
}

dvt_status device_open(uint32_t index, dvt_device** out) {
  if (level == Level::none) return DVT_FAIL(DVT_INVALID, "%s", choice_error);
  if (index) return DVT_FAIL(DVT_INVALID, "[cpu] no such device: expected index 0, got %u", index);
  *out = &device;
  return DVT_OK;
}

void device_close(dvt_device*) {}

dvt_status device_props(dvt_device*, dvt_props* p) {
  const char* const architecture = level_names()[size_t(level)].architecture;
  std::snprintf(p->name, sizeof p->name, "%s", *features().name ? features().name : architecture);
  std::snprintf(p->arch, sizeof p->arch, "%s", architecture);
  DVT_PUT(p, dvt_props, kind, DVT_KIND_CPU);
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED | DVT_CAP_FORK_SAFE);
  DVT_PUT(p, dvt_props, dl_device_type, 1 /* kDLCPU */);
  DVT_PUT(p, dvt_props, mem_total, physical_memory());
  DVT_PUT(p, dvt_props, alloc_align, uint64_t(alignment));
  return DVT_OK;
}

dvt_status alloc(dvt_device*, uint64_t size, uint32_t, dvt_stream*, void** out) {
  // Linux overcommits memory, and kills processes that use more than there is.
  *out = size <= physical_memory() ? ::operator new(size, alignment, std::nothrow) : nullptr;
  if (!*out) return DVT_OOM;
  ask_for_large_pages(static_cast<char*>(*out), size);
  return DVT_OK;
}

void dealloc(dvt_device*, void* data, uint32_t, dvt_stream*) { ::operator delete(data, alignment); }

dvt_status copy(dvt_device*, const DLTensor* dst, const DLTensor* src, dvt_stream*) {
  if (const uint64_t n = dvt::bytes(src)) std::memcpy(dvt::data<char>(dst), dvt::data<char>(src), n);
  return DVT_OK;
}

dvt_status mem_info(dvt_device*, uint64_t* free_bytes, uint64_t* total) {
  *total = physical_memory();
  *free_bytes = free_memory();
  return DVT_OK;
}

const dvt_compiler* compiler_table = nullptr;
const void* extension(const char* name, uint32_t version) {
  const bool known = !std::strcmp(name, "dovetail.compiler") && version == DVT_X_COMPILER;
  return known ? compiler_table : nullptr;
}

// "gcc 12.2.0; kernels avx2; processor avx512 vnni bf16; levels default avx2; OpenBLAS 0.3.30; oneDNN 3.2.1"
std::string build_info() {
  const Features& f = features();
  std::string s;
#if defined(__clang__)
  s += "clang " __clang_version__;
#else
  s += "gcc " __VERSION__;
#endif
  s += std::string("; kernels ") + name(level) + "; processor " + name(f.level);
  for (const char* const* extra = f.extras; *extra; ++extra) s += std::string(" ") + *extra;
  if (may_use_tiles()) s += "; AMX";
  s += "; levels " + built_levels(" ");
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
  s += "; OpenBLAS " DOVETAIL_CPU_OPENBLAS_VERSION;
#else
  s += "; without OpenBLAS";
#endif
#if defined(DOVETAIL_CPU_HAS_ONEDNN)
  char version[40];
  std::snprintf(version, sizeof version, "; oneDNN %d.%d.%d", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
                DNNL_VERSION_PATCH);
  s += version;
#else
  s += "; without oneDNN";
#endif
  return s;
}
}  // namespace

Level active_level() { return level; }
}  // namespace dovetail::cpu

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  using namespace dovetail::cpu;
  if (dvt_status s = dvt::accept(host)) return s;
  static const dvt_backend backend = [] {
    Table& table = *new Table;  // these two are never destroyed: the host's atexit may still call us
    level = choose_level(choice_error, sizeof choice_error);
    const auto refuse = [](const char* cause, const char* value) {
      level = Level::none;
      std::snprintf(choice_error, sizeof choice_error, "[cpu] %s, got \"%s\"; correct or unset it", cause, value);
    };
    const char* kernels = std::getenv("DOVETAIL_CPU_KERNELS");
    if (kernels && *kernels && !std::strcmp(kernels, "must")) {
      table.restrict_to_must_haves();
    } else if (kernels && *kernels && std::strcmp(kernels, "all")) {
      refuse("DOVETAIL_CPU_KERNELS is not a selection: expected must or all", kernels);
    }
    const char* const tiles = std::getenv("DOVETAIL_CPU_AMX");
    if (tiles && *tiles && std::strcmp(tiles, "0") && std::strcmp(tiles, "1"))
      refuse("DOVETAIL_CPU_AMX is not a choice: expected 0 or 1", tiles);
    if (level != Level::none) add_rows(table, level), add_linalg_rows(table);
    const std::string& info = *new std::string(build_info());
    const char* const autotune = std::getenv("DOVETAIL_CPU_AUTOTUNE");
    if (!start_autotune(autotune,
                        std::string(features().name) + "; dovetail-cpu " DOVETAIL_CPU_VERSION "; " + info))
      refuse("DOVETAIL_CPU_AUTOTUNE is not a switch: expected 0 or 1", autotune);
    dvt_backend b{};
    b.struct_size = sizeof b;
    b.abi_major = DVT_ABI_MAJOR, b.abi_minor = DVT_ABI_MINOR, b.abi_draft = DVT_ABI_DRAFT;
    b.name = "cpu", b.version = DOVETAIL_CPU_VERSION, b.build_info = info.c_str();
    b.kernels = table.rows(), b.n_kernels = table.size();
    b.device_count = device_count, b.device_open = device_open, b.device_close = device_close;
    b.extension = extension;
    compiler_table = compiler(table);
    b.device_props = device_props, b.alloc = alloc, b.dealloc = dealloc, b.copy = copy, b.mem_info = mem_info;
    return b;
  }();
  *out = &backend;
  return DVT_OK;
}
