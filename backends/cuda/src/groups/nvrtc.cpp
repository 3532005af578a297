#include "groups/nvrtc.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "driver/driver.hpp"

namespace gpu::nvrtc {
namespace {
const Functions& functions() { return OpenedLibrary<Functions>::get().functions; }

void check(nvrtcResult result, const char* call) {
  if (result != NVRTC_SUCCESS) throw Refused(std::string(call) + ": " + functions().nvrtcGetErrorString(result));
}

std::string find_what_is_missing(int capability) {
  const auto& library = OpenedLibrary<Functions>::get();
  if (!library.missing.empty()) return library.missing;
  if (is_emulated() && !library.works_with_emulator) return "the emulated driver runs no machine code of NVRTC's";
  int n = 0;
  check(functions().nvrtcGetNumSupportedArchs(&n), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<size_t>(n));
  check(functions().nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
  if (std::ranges::find(known, capability) != known.end()) return "";
  return "NVRTC is too old for this GPU: it has no sm_" + std::to_string(capability) +
         Library(nvrtc_library).cure();
}

class Program {
 public:
  explicit Program(const std::string& text) {
    std::vector<const char*> names, texts;
    for (const Header* h = headers; *h->name; ++h) names.push_back(h->name), texts.push_back(h->text);
    check(functions().nvrtcCreateProgram(&handle_, text.c_str(), "group.cu", int(names.size()), texts.data(),
                                         names.data()),
          "nvrtcCreateProgram");
  }
  ~Program() { functions().nvrtcDestroyProgram(&handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::vector<const char*>& options) {
    return functions().nvrtcCompileProgram(handle_, int(options.size()), options.data());
  }
  std::string log() const {
    size_t size = 0;
    check(functions().nvrtcGetProgramLogSize(handle_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    if (size) check(functions().nvrtcGetProgramLog(handle_, text.data()), "nvrtcGetProgramLog");
    return text.c_str();  // without the 0 that it counts
  }
  std::string code() const {
    size_t size = 0;
    check(functions().nvrtcGetCUBINSize(handle_, &size), "nvrtcGetCUBINSize");
    std::string bytes(size, '\0');
    check(functions().nvrtcGetCUBIN(handle_, bytes.data()), "nvrtcGetCUBIN");
    return bytes;
  }

 private:
  nvrtcProgram handle_ = nullptr;
};
}  // namespace

const char* missing(int capability) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, std::string>;
  const std::lock_guard guard(mutex);
  const auto [it, is_new] = known.try_emplace(capability);
  if (is_new) it->second = find_what_is_missing(capability);
  return it->second.c_str();
}

std::string compile(const std::string& text, int capability) {
  const std::string architecture = "-arch=sm_" + std::to_string(capability);
  Program program(text);
  // As the build compiles kernels: a product and a sum are one rounding only where the source calls fma, and
  // functions without a mark are for the device.
  const nvrtcResult result =
      program.compile({"-std=c++20", "-fmad=false", "-default-device", architecture.c_str()});
  if (result == NVRTC_ERROR_COMPILATION) throw Refused("NVRTC refuses a group's text: " + program.log());
  check(result, "nvrtcCompileProgram");
  return program.code();
}
}  // namespace gpu::nvrtc
