#include "driver/devices.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "driver/call.hpp"

namespace emulator {
namespace {
constexpr Model models[] = {
    {7, 5, "T4", 40, 65 << 10, 4 << 20, 1590000, 5001000, 256},
    {8, 0, "A100", 108, 164 << 10, 40 << 20, 1410000, 1593000, 5120},
    {8, 9, "L40S", 142, 100 << 10, 96 << 20, 2520000, 9001000, 384},
    {9, 0, "H200", 132, 228 << 10, 50 << 20, 1980000, 3201000, 6144},
    {10, 0, "B200", 148, 228 << 10, 126 << 20, 1965000, 3996000, 8192},
    {12, 0, "RTX 5090", 170, 100 << 10, 96 << 20, 2407000, 14001000, 512},
};
constexpr uint64_t default_memory = uint64_t{4} << 30;
std::atomic<bool> initialised = false, deinitialised = false;

[[noreturn]] void wrong(const char* variable, const char* value, const char* expected) {
  std::fprintf(stderr, "%s=%s: expected %s\n", variable, value, expected);
  std::abort();
}

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (!text) return otherwise;
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  if (end == text || *end) wrong(variable, text, "a number");
  return number;
}

enum class PeerAccess { works, none, lossy };
PeerAccess find_peer_access() {
  constexpr const char* variable = "DOVETAIL_CUDA_EMULATED_PEERS";
  const char* text = std::getenv(variable);
  if (!text) return PeerAccess::works;
  if (!std::strcmp(text, "none")) return PeerAccess::none;
  if (!std::strcmp(text, "lossy")) return PeerAccess::lossy;
  wrong(variable, text, "none or lossy");
}
PeerAccess peer_access() {
  static const PeerAccess one = find_peer_access();
  return one;
}

const Model& find_model() {
  constexpr const char* variable = "DOVETAIL_CUDA_EMULATED_CAPABILITY";
  const char* text = std::getenv(variable);
  const std::string_view wanted = text ? text : "9.0";
  for (const Model& m : models)
    if (wanted == std::to_string(m.major) + "." + std::to_string(m.minor)) return m;
  wrong(variable, text, "7.5, 8.0, 8.9, 9.0, 10.0 or 12.0");
}

int value_of(CUdevice_attribute which, CUdevice device) {
  const Model& m = model();
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return m.major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return m.minor;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return m.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return shared_unless_raised;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return m.most_shared();
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return m.shared_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return m.l2_bytes;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return m.clock_khz;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return m.memory_clock_khz;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return m.bus_bits;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 3;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device + 1;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: return 0;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
    default:
      refuse(CUDA_ERROR_INVALID_VALUE, "device attribute " + std::to_string(int(which)) + " is not imitated");
  }
}

// Copies as much of the text as fits, like the driver.
void put(char* to, int length, const std::string& text) {
  if (length <= 0) refuse(CUDA_ERROR_INVALID_VALUE, "the buffer has no place for a name");
  std::snprintf(&place_for(to), size_t(length), "%s", text.c_str());
}
}  // namespace

bool is_initialised() { return initialised; }
bool is_deinitialised() { return deinitialised; }

const Model& model() {
  static const Model& one = find_model();
  return one;
}

size_t memory_of_device() {
  static const size_t bytes = number_of("DOVETAIL_CUDA_EMULATED_MEMORY", default_memory);
  return bytes;
}

int count_devices() {
  static const int n = int(number_of("DOVETAIL_CUDA_EMULATED_DEVICES", 1));
  return n;
}

void check_device(CUdevice device) {
  if (device < 0 || device >= count_devices())
    refuse(CUDA_ERROR_INVALID_DEVICE, "there is no device " + std::to_string(device));
}

bool are_peers(CUdevice one, CUdevice other) { return one != other && peer_access() != PeerAccess::none; }
bool loses_direct_copies() { return peer_access() == PeerAccess::lossy; }
}  // namespace emulator

// ---- functions of cuda.h ----------------------------------------------------------------------------------------

using namespace emulator;

CUresult cuInit(unsigned flags) {
  return answer("cuInit", Needs::nothing, [&] {
    if (flags) refuse(CUDA_ERROR_INVALID_VALUE, "flags must be 0");
    if (!count_devices()) refuse(CUDA_ERROR_NO_DEVICE, "DOVETAIL_CUDA_EMULATED_DEVICES is 0");
    (void)model();
    // Like the driver, which ends before what was loaded earlier.
    static const bool once = std::atexit([] { deinitialised = true; }) == 0;
    initialised = once;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return answer("cuDriverGetVersion", Needs::nothing,
                [&] { place_for(version) = int(number_of("DOVETAIL_CUDA_EMULATED_VERSION", CUDA_VERSION)); });
}

CUresult cuDeviceGetCount(int* count) {
  return answer("cuDeviceGetCount", Needs::driver, [&] { place_for(count) = count_devices(); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return answer("cuDeviceGet", Needs::driver, [&] {
    check_device(ordinal);
    place_for(device) = ordinal;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return answer("cuDeviceGetName", Needs::driver, [&] {
    check_device(device);
    put(name, length, std::string("Emulated ") + model().name);
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return answer("cuDeviceGetUuid", Needs::driver, [&] {
    check_device(device);
    std::memset(place_for(uuid).bytes, 0, sizeof uuid->bytes);
    uuid->bytes[15] = char(device + 1);
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return answer("cuDeviceGetPCIBusId", Needs::driver, [&] {
    check_device(device);
    char text[sizeof "0000:00:00.0"];
    std::snprintf(text, sizeof text, "0000:%02x:00.0", unsigned(device + 1) & 0xff);
    put(id, length, text);
  });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return answer("cuDeviceTotalMem", Needs::driver, [&] {
    check_device(device);
    place_for(bytes) = memory_of_device();
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  return answer("cuDeviceGetAttribute", Needs::driver, [&] {
    check_device(device);
    place_for(value) = value_of(which, device);
  });
}
