#include "driver/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace gpu {
namespace {
struct Opened {
  Driver driver;
  std::string missing;
  bool emulated = false;
};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

constexpr char install_it[] = "install NVIDIA's driver, release 580 or newer; in a container, pass the GPUs to it";

std::string not_found(const char* chosen) {
  const std::string why = std::string("there is no CUDA driver: ") + dlerror() + "; ";
  return why + (chosen ? std::string("correct or unset ") + driver_variable : install_it);
}

// After cuInit, which reports what is wrong with a driver that is there. Device functions of CUDA's runtime would
// not.
std::string start(const Driver& d) {
  int version = 0;
  if (d.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < oldest_driver)
    return "the CUDA driver is too old: it knows CUDA " + version_text(version) + ", expected " +
           version_text(oldest_driver) + " or newer; " + install_it;
  const CUresult result = d.cuInit(0);
  const char* text = nullptr;
  switch (result) {
    case CUDA_SUCCESS: return "";
    case CUDA_ERROR_NO_DEVICE:
      return "the CUDA driver finds no GPU; CUDA_VISIBLE_DEVICES must not hide it; in a container, pass it on";
    case CUDA_ERROR_STUB_LIBRARY:
      return "libcuda.so.1 is the stub that programs are linked with, not a driver; take its folder out of "
             "LD_LIBRARY_PATH";
    default:
      if (d.cuGetErrorString(result, &text) != CUDA_SUCCESS) text = "an error it has no words for";
      return std::string("the CUDA driver does not start: ") + text + " (" + std::to_string(int(result)) +
             "); see what nvidia-smi prints, and after an update of the driver start the machine again";
  }
}

Opened open() {
  Opened o;
  const char* chosen = std::getenv(driver_variable);
  if (chosen && !*chosen) chosen = nullptr;
  // Never closed: a driver keeps threads.
  void* const library = dlopen(chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    o.missing = not_found(chosen);
    return o;
  }
#define GPU_NAME_AS_EXPANDED(f) #f
#define GPU_NAME(f) GPU_NAME_AS_EXPANDED(f)
#define GPU_FIND(f)                                                                 \
  o.driver.f = reinterpret_cast<decltype(o.driver.f)>(dlsym(library, GPU_NAME(f))); \
  if (!o.driver.f && o.missing.empty())                                             \
    o.missing = "the CUDA driver is too old: it has no " GPU_NAME(f) "; " + std::string(install_it);
  GPU_DRIVER_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
  o.emulated = dlsym(library, emulation_marker) != nullptr;
  if (o.missing.empty()) o.missing = start(o.driver);
  return o;
}

const Opened& opened() {
  static const Opened& once = *new Opened(open());
  return once;
}

std::string words(CUresult result, const char* call) {
  const char *name = nullptr, *text = nullptr;
  if (driver().cuGetErrorName(result, &name) != CUDA_SUCCESS) name = "unknown error";
  if (driver().cuGetErrorString(result, &text) != CUDA_SUCCESS) text = "";
  return std::string(call, std::strcspn(call, "(")) + ": " + text + " (" + name + ")";
}
}  // namespace

const std::string& missing_driver() { return opened().missing; }

const Driver& driver() {
  const Opened& o = opened();
  if (!o.missing.empty()) throw std::logic_error(o.missing);
  return o.driver;
}

bool is_emulated() { return opened().emulated; }

Error::Error(CUresult result, const char* call) : std::runtime_error(words(result, call)), result_(result) {}
}  // namespace gpu
