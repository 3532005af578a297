// NVRTC, CUDA's compiler as a library: from the text of a kernel to machine code.
#pragma once
#include <nvrtc.h>

#include <stdexcept>
#include <string>

#include "driver/libraries.hpp"

namespace gpu::nvrtc {
// clang-format off
#define GPU_NVRTC_FUNCTIONS(X) \
  X(nvrtcCompileProgram) X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcGetCUBIN) X(nvrtcGetCUBINSize) \
  X(nvrtcGetErrorString) X(nvrtcGetNumSupportedArchs) X(nvrtcGetProgramLog) X(nvrtcGetProgramLogSize) \
  X(nvrtcGetSupportedArchs)
// clang-format on

struct Functions {
  GPU_LIBRARY_TABLE(GPU_NVRTC_FUNCTIONS)
  static Library open() { return Library(nvrtc_library); }
};

// A header that texts include: by `name`, wherever it was. The list, which the build embeds, ends with an empty
// name.
struct Header {
  const char *name, *text;
};
extern const Header headers[];

// Why there is no code for GPUs of this compute capability, and the cure; "" if there is. Lasts until the process
// has ended. The first call opens the library.
const char* missing(int capability);

// A text that does not compile, in the compiler's words.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Machine code for GPUs of this compute capability: a cubin. Throws Refused.
std::string compile(const std::string& text, int capability);
}  // namespace gpu::nvrtc
