#include "dispatch/dump.hpp"

#include <cinttypes>
#include <filesystem>
#include <fstream>

#include "dispatch/invocation.hpp"
#include "dovetail/codegen.hpp"
#include "graph/text.hpp"
#include "platform/paths.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush())
    on_warning("[compile] DOVETAIL_COMPILE_DUMP: " + platform::from_path(path) + " cannot be written");
}

std::string loops_of(const dvt_program& p) {
  dvt::codegen::Loops loops;
  if (const char* reason = dvt::codegen::lower(p, loops)) return std::string("no loops: ") + reason + "\n";
  return dvt::codegen::text_of(p, loops);
}
}  // namespace

void dump_group(const std::string& name, const Program& program, const dvt_program& view) {
  const char* const folder = platform::own_variable("DOVETAIL_COMPILE_DUMP");
  if (!folder || !*folder) return;
  std::error_code failed;
  const fs::path path = platform::to_path(folder);
  fs::create_directories(path, failed);
  if (failed) {
    on_warning(std::string("[compile] DOVETAIL_COMPILE_DUMP: ") + folder + ": " + failed.message());
    return;
  }
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016" PRIx64, view.hash[0]);
  const std::string stem = name + "-" + hash;
  write(path / (stem + ".json"), to_json(program).dump() + "\n");
  write(path / (stem + ".loops"), loops_of(view));
}
}  // namespace dovetail
