// Which devices there are, and what they are.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "device/errors.hpp"
#include "gpu/functions.hpp"

dvt_device::dvt_device(uint32_t i, const sycl::device& dev)
    : index(i),
      device(dev),
      context(dev.get_platform().khr_get_default_context()),  // that of everybody else: memory can be shared
      has_fp64(dev.has(sycl::aspect::fp64)),
      is_cpu(dev.is_cpu()),
      memory(context, dev),
      staging(gpu::PinnedMemory{context}),
      own_stream(*this, 0) {}

namespace gpu {
namespace {
constexpr char allow_cpu[] = "DOVETAIL_XPU_ALLOW_CPU";  // =1: SYCL's CPU device too, for tests; =0: not

bool cpu_allowed() {
  const char* text = std::getenv(allow_cpu);
  return text && *text && std::strcmp(text, "0");
}

// The CPU device is an OpenCL driver, which the wheel that brings it registers nowhere: OpenCL's loader reads this
// variable once, when SYCL first looks for devices.
void register_cpu_driver() {
  Dl_info runtime;
  if (!dladdr(reinterpret_cast<void*>(&sycl::platform::get_platforms), &runtime)) return;
  const auto driver = std::filesystem::path(runtime.dli_fname).replace_filename("libintelocl.so");
  std::error_code ignored;
  if (std::filesystem::exists(driver, ignored)) setenv("OCL_ICD_FILENAMES", driver.c_str(), 0);
}

bool is_usable(const sycl::device& d) {
  if (!d.has(sycl::aspect::usm_device_allocations) || !d.has(sycl::aspect::fp16)) return false;
  return d.is_gpu() ? d.get_backend() == sycl::backend::ext_oneapi_level_zero : d.is_cpu() && cpu_allowed();
}

}  // namespace

const std::vector<sycl::device>& devices() {
  static const std::vector<sycl::device>& all = *[] {
    if (cpu_allowed()) register_cpu_driver();
    auto* found = new std::vector<sycl::device>;
    for (const auto type : {sycl::info::device_type::gpu, sycl::info::device_type::cpu})
      for (const sycl::device& d : sycl::device::get_devices(type))
        if (is_usable(d)) found->push_back(d);
    return found;
  }();
  return all;
}

namespace {
const char* architecture(const sycl::device& d) {
  namespace syclex = sycl::ext::oneapi::experimental;
  switch (d.get_info<syclex::info::device::architecture>()) {
#define __SYCL_ARCHITECTURE(name, value) \
  case syclex::architecture::name: return #name;
#define __SYCL_ARCHITECTURE_ALIAS(name, value)
#include <sycl/ext/oneapi/experimental/device_architecture.def>
#undef __SYCL_ARCHITECTURE
#undef __SYCL_ARCHITECTURE_ALIAS
    default: return "unknown";
  }
}

// Multiplications and additions in float32 by the vector units, per second; 0 if the driver does not report it.
double peak_flops(const sycl::device& d) {
  namespace intel = sycl::ext::intel::info::device;
  const double hz = 1e6 * d.get_info<sycl::info::device::max_clock_frequency>();
  if (d.is_cpu())  // two fused multiply-adds of a whole vector in each cycle
    return hz * d.get_info<sycl::info::device::max_compute_units>() *
           d.get_info<sycl::info::device::native_vector_width_float>() * 4;
  if (!d.has(sycl::aspect::ext_intel_gpu_eu_count) || !d.has(sycl::aspect::ext_intel_gpu_eu_simd_width)) return 0;
  return hz * d.get_info<intel::gpu_eu_count>() * d.get_info<intel::gpu_eu_simd_width>() * 2;
}

// 0 if the driver does not report it.
double peak_bandwidth(const sycl::device& d) {
  namespace intel = sycl::ext::intel::info::device;
  if (!d.has(sycl::aspect::ext_intel_memory_clock_rate) || !d.has(sycl::aspect::ext_intel_memory_bus_width))
    return 0;
  return 1e6 * d.get_info<intel::memory_clock_rate>() * d.get_info<intel::memory_bus_width>() / 8;
}

template <size_t N>
void put(char (&to)[N], const std::string& text) {
  std::snprintf(to, N, "%s", text.c_str());
}

std::string uuid(const sycl::device& d) {
  std::string text;
  for (const unsigned char byte : d.get_info<sycl::ext::intel::info::device::uuid>()) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    text += hex;
  }
  return text;
}

void fill(dvt_props* p, const dvt_device& d) {
  const sycl::device& device = d.device;
  put(p->name, device.get_info<sycl::info::device::name>());
  put(p->arch, architecture(device));
  if (device.has(sycl::aspect::ext_intel_device_info_uuid)) put(p->uuid, uuid(device));
  if (device.has(sycl::aspect::ext_intel_pci_address))
    put(p->pci, device.get_info<sycl::ext::intel::info::device::pci_address>());
  DVT_PUT(p, dvt_props, kind, device.is_gpu() ? DVT_KIND_GPU : DVT_KIND_CPU);
  DVT_PUT(p, dvt_props, caps, 0);
  // SYCL's CPU device is none that another library would know.
  DVT_PUT(p, dvt_props, dl_device_type, device.is_gpu() ? 14 /* kDLOneAPI */ : 12 /* kDLExtDev */);
  DVT_PUT(p, dvt_props, dl_device_id, int32_t(d.index));
  DVT_PUT(p, dvt_props, mem_total, d.memory.total());
  DVT_PUT(p, dvt_props, alloc_align, Memory::alignment);
  DVT_PUT(p, dvt_props, max_streams, 32);
  DVT_PUT(p, dvt_props, peak_bytes_per_s, peak_bandwidth(device));
  const double flops = peak_flops(device);
  if (flops > 0) p->peaks[0] = {dvt::f32, 0, flops};
  DVT_PUT(p, dvt_props, n_peaks, flops > 0 ? 1 : 0);
}
}  // namespace

dvt_status device_count(uint32_t* n) {
  try {
    *n = uint32_t(devices().size());
    return DVT_OK;
  } catch (...) {
    *n = 0;
    return report_exception(nullptr);
  }
}

dvt_status device_open(uint32_t index, dvt_device** out) {
  uint32_t n;
  if (dvt_status s = device_count(&n)) return s;
  if (dvt_status s = check_index(index, n)) return s;
  try {
    *out = new dvt_device(index, devices()[index]);
    return DVT_OK;
  } catch (...) {
    return report_exception(nullptr);
  }
}

void device_close(dvt_device* d) {
  try {
    d->own_stream.queue.wait();
    d->deferred.drain();
    delete d;
  } catch (...) {  // its memory went with it
    (void)report_exception(d);
  }
}

// The context stays, and with it every address: only a driver that lets new queues work on it gives the device
// back.
dvt_status device_reset(dvt_device* d) {
  try {
    d->streams.renew();
    d->deferred.abandon();
    const std::shared_ptr<void> word(d->staging.take(), [d](void* buffer) { d->staging.give_back(buffer); });
    d->own_stream.queue.memset(word.get(), 0, 1).wait_and_throw();
    d->lost = false;
    return DVT_OK;
  } catch (...) {
    return report_exception(d);
  }
}

dvt_status device_props(dvt_device* d, dvt_props* p) {
  return guarded(d, [&] {
    fill(p, *d);
    return DVT_OK;
  });
}
}  // namespace gpu
