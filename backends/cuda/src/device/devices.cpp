// Which devices there are, and what they are.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace gpu {
int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  GPU_CALL(cuDeviceGetAttribute(&value, which, device));
  return value;
}

namespace {
int capability_of(CUdevice device) {
  return attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
         attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

struct Found {
  std::vector<CUdevice> usable;
  std::string too_old;  // one that is not
};
Found find() {
  Found found;
  int count = 0;
  GPU_CALL(cuDeviceGetCount(&count));
  for (int i = 0; i < count; ++i) {
    CUdevice device;
    GPU_CALL(cuDeviceGet(&device, i));
    if (capability_of(device) >= oldest_capability) {
      found.usable.push_back(device);
      continue;
    }
    char name[64];
    GPU_CALL(cuDeviceGetName(name, sizeof name, device));
    found.too_old = name;
  }
  return found;
}
const Found& found() {
  static const Found& once = *new Found(find());
  return once;
}
}  // namespace

CUdevice device_at(uint32_t index) { return found().usable.at(index); }
}  // namespace gpu

dvt_device::dvt_device(uint32_t i, std::unique_ptr<const gpu::Context> c)
    : index(i),
      owned_context(std::move(c)),
      capability(gpu::capability_of(context.device())),
      multiprocessors(gpu::attribute(context.device(), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)),
      has_pools(gpu::attribute(context.device(), CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)),
      own_stream(*this, 0) {}

namespace gpu {
namespace {
// Multiplications and additions that a multiprocessor does in a cycle, with tensor cores for fp16, bf16 and
// float64: from the architectures' white papers. 0: not known here.
struct Throughput {
  int capability;
  double f32, half, f64;
};
constexpr Throughput throughputs[] = {
    {80, 128, 2048, 128}, {86, 256, 1024, 4}, {89, 256, 1024, 4}, {90, 256, 4096, 256}, {100, 256, 8192, 128},
};

void put_peaks(dvt_props* p, const dvt_device& d) {
  const CUdevice device = d.context.device();
  const double hz = 1e3 * attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  const auto known = std::find_if(std::begin(throughputs), std::end(throughputs),
                                  [&](const Throughput& t) { return t.capability == d.capability; });
  uint32_t n = 0;
  if (known != std::end(throughputs)) {
    const double cycles = hz * d.multiprocessors;
    p->peaks[n++] = {dvt::f32, 0, known->f32 * cycles};
    p->peaks[n++] = {dvt::f16, 0, known->half * cycles};
    p->peaks[n++] = {dvt::bf16, 0, known->half * cycles};
    p->peaks[n++] = {dvt::f64, 0, known->f64 * cycles};
  }
  DVT_PUT(p, dvt_props, n_peaks, n);
  const double bus_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  const double transfers = 2e3 * attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);  // two in each cycle
  DVT_PUT(p, dvt_props, peak_bytes_per_s, bus_bytes * transfers);
}

void put_identity(dvt_props* p, const dvt_device& d) {
  const CUdevice device = d.context.device();
  GPU_CALL(cuDeviceGetName(p->name, sizeof p->name, device));
  std::snprintf(p->arch, sizeof p->arch, "sm_%d", d.capability);
  GPU_CALL(cuDeviceGetPCIBusId(p->pci, sizeof p->pci, device));
  CUuuid uuid;
  GPU_CALL(cuDeviceGetUuid(&uuid, device));
  for (size_t i = 0; i < sizeof uuid.bytes; ++i)
    std::snprintf(p->uuid + 2 * i, 3, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
}

bool reaches_another(const dvt_device& d) {
  return std::ranges::any_of(found().usable, [&](CUdevice other) {
    int can = 0;
    if (other != d.context.device()) GPU_CALL(cuDeviceCanAccessPeer(&can, d.context.device(), other));
    return can != 0;
  });
}

// Finding no device of this kind is no error: the message gives the reason.
dvt_status none(const std::string& why) { return DVT_FAIL(DVT_UNSUPPORTED, "%s", why.c_str()); }
}  // namespace

dvt_status device_count(uint32_t* n) {
  *n = 0;
  if (const std::string& why = missing_driver(); !why.empty()) return none(why);
  try {
    const auto& [usable, too_old] = found();
    if (usable.empty())
      return none(too_old + " is too old: expected compute capability 8.0 (Ampere) or newer; use another GPU");
    *n = uint32_t(usable.size());
    return DVT_OK;
  } catch (...) {
    return report_exception(nullptr);
  }
}

dvt_status device_open(uint32_t index, dvt_device** out) {
  uint32_t n;
  if (dvt_status s = device_count(&n)) return s;
  if (dvt_status s = check_index(index, n)) return s;
  try {
    auto context = std::make_unique<const Context>(device_at(index));
    const Current current(*context);
    *out = new dvt_device(index, std::move(context));
    return DVT_OK;
  } catch (...) {
    return report_exception(nullptr);
  }
}

void device_close(dvt_device* d) {
  (void)guarded(d, [&] {
    GPU_CALL(cuStreamSynchronize(d->own_stream.handle));
    d->deferred.drain();
    return DVT_OK;
  });
  // The rest goes with the process: the libraries that it has handles of may have ended before this.
}

dvt_status device_props(dvt_device* d, dvt_props* p) {
  return guarded(d, [&] {
    put_identity(p, *d);
    size_t total = 0;
    GPU_CALL(cuDeviceTotalMem(&total, d->context.device()));
    DVT_PUT(p, dvt_props, kind, DVT_KIND_GPU);
    DVT_PUT(p, dvt_props, caps, reaches_another(*d) ? DVT_CAP_P2P : 0);
    DVT_PUT(p, dvt_props, dl_device_type, 2 /* kDLCUDA */);
    DVT_PUT(p, dvt_props, dl_device_id, d->context.device());
    DVT_PUT(p, dvt_props, mem_total, total);
    DVT_PUT(p, dvt_props, alloc_align, 256);
    DVT_PUT(p, dvt_props, max_streams, 32);
    put_peaks(p, *d);
    return DVT_OK;
  });
}
}  // namespace gpu
