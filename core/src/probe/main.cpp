// dovetail-probe LIBRARY [FOLDER...]: opens a device's plugin as the runtime would, up to counting its devices, in
// a process that may crash. FOLDER: where the libraries that it needs may lie. Whether it may be used is not
// decided here: the runtime asks the plugin again, and reads its table again, when this program came to its end.
#include <cstdio>
#include <string>
#include <vector>

#include "device/handshake.hpp"
#include "dovetail/abi.h"
#include "platform/platform.hpp"
#include "probe/stages.hpp"

namespace {
using namespace dovetail;

void enter(const char* stage) {
  std::printf("%s%s\n", probe::kStage, stage);
  std::fflush(stdout);
}
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
}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: dovetail-probe LIBRARY [FOLDER...]\n");
    return 2;
  }
  platform::no_core_files();
  const std::vector<std::string> search(argv + 2, argv + argc);

  enter(probe::kOpening);
  std::string error;
  void* library = platform::open_library(argv[1], search, error);
  if (!library) done();

  enter(probe::kProbing);
  const auto usable = reinterpret_cast<decltype(&dvt_probe_v1)>(platform::find_symbol(library, "dvt_probe_v1"));
  const auto entry = reinterpret_cast<decltype(&dvt_backend_v1)>(platform::find_symbol(library, "dvt_backend_v1"));
  char reason[1024] = {};
  if (!usable || usable(reason, sizeof reason) <= 0) done();
  if (!entry) done();  // a kernel pack, which only the process that has its backend can ask

  enter(probe::kAsking);
  static const dvt_host host{sizeof host, DVT_ABI_MAJOR, DVT_ABI_MINOR, DVT_ABI_DRAFT, argv[1],     fail,
                             ignore,      one_thread,    run_inline,    no_trace,      no_extension};
  const dvt_backend* table = nullptr;
  if (entry(&host, &table) != DVT_OK) done();

  enter(probe::kReading);
  try {
    check_table(table, "");
  } catch (const Error&) {
    done();
  }

  enter(probe::kCounting);
  uint32_t devices = 0;
  table->device_count(&devices);
  done();
}
