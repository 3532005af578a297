// libnvrtc.so.13 for the emulated driver: a text becomes a shared library of the host's, by the C++ compiler that
// built this one, and the emulator runs the kernel that is in it. Headers are the emulator's and the tree's. It
// refuses what NVRTC would not take, and texts that contain FAKE_NVRTC_REFUSE. In the folder FAKE_NVRTC_LOG it
// keeps each text that it is to compile, as <number>.cu whose first line has the options, and what texts may
// include in the folder headers.
#include <dlfcn.h>
#include <nvrtc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>

namespace fs = std::filesystem;

struct _nvrtcProgram {
  std::string text, log, code;
};

namespace {
constexpr int architectures[] = {80, 86, 89, 90};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void keep(const std::string& text, const std::string& options) {
  static std::atomic<int> number = 0;
  if (const fs::path folder = variable("FAKE_NVRTC_LOG"); !folder.empty())
    write(folder / (std::to_string(number++) + ".cu"), "// " + options + "\n" + text);
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder that goes with the object.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = fs::temp_directory_path() / "fake_nvrtc_XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
};

// EMULATOR_CODE for the kernel that the text declares as CUDA does.
bool describe(const std::string& text, std::string& line) {
  static const std::regex kernel(R"(extern "C" __global__ void __launch_bounds__\((\d+)\) (\w+)\()");
  std::smatch found;
  if (!std::regex_search(text, found, kernel)) return false;
  line = "EMULATOR_CODE(" + found.str(2) + ", " + found.str(1) + ")\n";
  return true;
}

nvrtcResult build(nvrtcProgram p) {
  std::string code;
  if (!describe(p->text, code)) return p->log = "no kernel", NVRTC_ERROR_COMPILATION;
  const Folder folder;
  const fs::path source = folder.path / "group.cpp", library = folder.path / "group.so", log = folder.path / "log";
  std::ofstream(source) << p->text << code;
  const std::string command = FAKE_NVRTC_COMPILER " -o " + library.string() + " " + source.string() + " " +
                              variable("DOVETAIL_CUDA_DRIVER") + " > " + log.string() + " 2>&1";
  if (std::system(command.c_str()) != 0) return p->log = content(log), NVRTC_ERROR_COMPILATION;
  p->code = content(library);
  return NVRTC_SUCCESS;
}
}  // namespace

extern "C" {
extern const int dovetail_cuda_emulator = 1;  // it works with emulated drivers

nvrtcResult nvrtcGetNumSupportedArchs(int* n) { return *n = std::size(architectures), NVRTC_SUCCESS; }
nvrtcResult nvrtcGetSupportedArchs(int* out) {
  return std::memcpy(out, architectures, sizeof architectures), NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "an error of the fake NVRTC";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* out, const char* text, const char*, int n, const char* const* headers,
                               const char* const* names) {
  // All that is included must be among the headers that come with the text.
  const std::set<std::string> given(names, names + n);
  std::set<std::string> wanted;
  const auto add = [&](const std::string& from) {
    static const std::regex include(R"(#include [<"]([^>"]+)[>"])");
    for (std::sregex_iterator it(from.begin(), from.end(), include), end; it != end; ++it) wanted.insert((*it)[1]);
  };
  add(text);
  for (int i = 0; i < n; ++i) add(headers[i]);
  if (const fs::path folder = variable("FAKE_NVRTC_LOG"); !folder.empty())
    for (int i = 0; i < n; ++i) write(folder / "headers" / names[i], headers[i]);
  wanted.erase("emulator.hpp"), wanted.erase("sycl/sycl.hpp");  // behind #if
  for (const std::string& name : wanted)
    if (!given.count(name)) return NVRTC_ERROR_INVALID_INPUT;
  *out = new _nvrtcProgram{text, "", ""};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* p) { return delete *p, *p = nullptr, NVRTC_SUCCESS; }

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char* const* options) {
  std::string all;
  for (int i = 0; i < n; ++i) all += (i ? " " : "") + std::string(options[i]);
  keep(p->text, all);
  for (const char* needed : {"-fmad=false", "-default-device", "-arch=sm_"})
    if (all.find(needed) == std::string::npos) return NVRTC_ERROR_INVALID_OPTION;
  const std::string refused = variable("FAKE_NVRTC_REFUSE");
  if (!refused.empty() && p->text.find(refused) != std::string::npos)
    return p->log = "refused: " + refused, NVRTC_ERROR_COMPILATION;
  return build(p);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t* size) {
  return *size = p->log.size() + 1, NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char* out) {
  return std::memcpy(out, p->log.c_str(), p->log.size() + 1), NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t* size) { return *size = p->code.size(), NVRTC_SUCCESS; }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char* out) {
  return std::memcpy(out, p->code.data(), p->code.size()), NVRTC_SUCCESS;
}
}
