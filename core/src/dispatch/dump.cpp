#include "dispatch/dump.hpp"

#include <cinttypes>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dispatch/invocation.hpp"
#include "dovetail/codegen.hpp"
#include "graph/text.hpp"

namespace dovetail {
namespace {
namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush())
    on_warning("[compile] DOVETAIL_COMPILE_DUMP: " + path.string() + " cannot be written");
}

std::string loops_of(const dvt_program& p) {
  dvt::codegen::Loops loops;
  if (const char* reason = dvt::codegen::lower(p, loops)) return std::string("no loops: ") + reason + "\n";
  return dvt::codegen::text_of(p, loops);
}
}  // namespace

void dump_group(const std::string& name, const Program& program, const dvt_program& view) {
  const char* const folder = std::getenv("DOVETAIL_COMPILE_DUMP");
  if (!folder || !*folder) return;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    on_warning(std::string("[compile] DOVETAIL_COMPILE_DUMP: ") + folder + ": " + failed.message());
    return;
  }
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016" PRIx64, view.hash[0]);
  const std::string stem = name + "-" + hash;
  write(fs::path(folder) / (stem + ".json"), to_json(program).dump() + "\n");
  write(fs::path(folder) / (stem + ".loops"), loops_of(view));
}
}  // namespace dovetail
