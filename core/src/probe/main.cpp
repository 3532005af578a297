// dovetail-probe LIBRARY [FOLDER...] [--pack-of BACKEND [FOLDER...]]: opens a device's plugin as the runtime would,
// up to the properties of its first device, or a kernel pack up to its table, in a process that may crash. FOLDER:
// a folder of libraries that LIBRARY needs. BACKEND: the library whose rows a pack is added to; it did not crash.
// This program does not decide whether the plugin may be used: the runtime asks the plugin again, and reads its
// table again, after this program came to its end.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "device/handshake.hpp"
#include "device/probe_stages.hpp"
#include "dovetail/abi.h"
#include "platform/platform.hpp"

namespace {
using namespace dovetail;

int stages = 1;  // the file of the stage lines

void enter(const char* stage) { platform::write_all(stages, probe::kStage + std::string(stage) + "\n"); }
[[noreturn]] void done() {
  enter(probe::kDone);
  platform::leave(0);  // destructors of a half-opened library prove nothing
}

dvt_status fail(const dvt_host*, dvt_status code, uint64_t, const char*, int, const char*) { return code; }
void ignore(const dvt_host*, int, const char*) {}
uint32_t one_thread(const dvt_host*) { return 1; }
void run_inline(const dvt_host*, uint64_t n, uint64_t, void (*fn)(void*, uint64_t, uint64_t, uint32_t), void* ctx) {
  if (n) fn(ctx, 0, n, 0);
}
void no_trace(const dvt_host*, uint64_t, const char*, uint64_t, uint64_t) {}
const void* no_extension(const dvt_host*, const char*, uint32_t) { return nullptr; }

const dvt_host* host(const char* plugin) {
  return new dvt_host{sizeof(dvt_host), DVT_ABI_MAJOR, DVT_ABI_MINOR, DVT_ABI_DRAFT, plugin,      fail,
                      ignore,           one_thread,    run_inline,    no_trace,      no_extension};
}

template <class F>
F* symbol(void* library, const char* name) {
  return reinterpret_cast<F*>(platform::find_symbol(library, name));
}

// nullptr where there is none, or none that the runtime would take.
const dvt_backend* table_of(void* library, const char* path) {
  const auto entry = symbol<decltype(dvt_backend_v1)>(library, "dvt_backend_v1");
  const dvt_backend* table = nullptr;
  enter(probe::kAsking);
  if (!entry || entry(host(path), &table) != DVT_OK) return nullptr;
  enter(probe::kReading);
  try {
    check_table(table, "");
  } catch (const Error&) {
    return nullptr;
  }
  return table;
}

void count_devices(void* library, const char* path) {
  const dvt_backend* table = table_of(library, path);
  if (!table) return;
  enter(probe::kCounting);
  uint32_t devices = 0;
  if (table->device_count(&devices) != DVT_OK || !devices) return;
  enter(probe::kOpeningDevice);
  dvt_device* device = nullptr;
  if (table->device_open(0, &device) != DVT_OK) return;
  enter(probe::kReadingProps);
  dvt_props props{};
  props.struct_size = sizeof props;
  table->device_props(device, &props);
  enter(probe::kClosingDevice);
  table->device_close(device);
}

void read_pack(void* library, const char* path, const std::string& backend_path,
               const std::vector<std::string>& search) {
  const auto entry = symbol<decltype(dvt_kernels_v1)>(library, "dvt_kernels_v1");
  platform::LibraryError error;
  void* backend = entry ? platform::open_library(backend_path, search, error) : nullptr;
  const dvt_backend* table = backend ? table_of(backend, backend_path.c_str()) : nullptr;
  if (!table) return;
  enter(probe::kAskingPack);
  const dvt_kernel_pack* pack = nullptr;
  if (entry(host(path), table, &pack) != DVT_OK) return;
  enter(probe::kReading);
  try {
    check_pack(pack, "");
  } catch (const Error&) {
  }
}
}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> given = platform::arguments(argc, argv);
  if (given.size() < 2) {
    std::fprintf(stderr, "usage: dovetail-probe LIBRARY [FOLDER...] [--pack-of BACKEND [FOLDER...]]\n");
    return 2;
  }
  platform::no_core_files();
  stages = platform::take_stdout();  // else a library could print stages
  const auto pack_of = std::find(given.begin() + 2, given.end(), probe::kPackOf);
  const std::string& path = given[1];

  enter(probe::kOpening);
  platform::LibraryError error;
  void* library = platform::open_library(path, {given.begin() + 2, pack_of}, error);
  if (!library) done();

  enter(probe::kProbing);
  const auto usable = symbol<decltype(dvt_probe_v1)>(library, "dvt_probe_v1");
  char reason[1024] = {};
  if (!usable || usable(reason, sizeof reason) <= 0) done();
  if (given.end() - pack_of > 1) read_pack(library, path.c_str(), pack_of[1], {pack_of + 2, given.end()});
  else count_devices(library, path.c_str());
  done();
}
