// The service "dovetail.toolchain" for plugins: machine code from tools in processes of their own, cached.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "device/tool_worker.hpp"
#include "dovetail/abi.h"

namespace dovetail {
const dvt_toolchain& toolchain_service();
// What starts the tool. DOVETAIL_TOOLCHAINS=name=command... comes before it.
void set_toolchain(const std::string& name, Tool);

struct ToolReport {
  struct Made {
    std::string key;  // of the cache
    uint64_t bytes = 0;
    double cpu_ms = 0;  // of the worker
  };
  std::string name;
  std::vector<Made> made;         // by the worker
  uint64_t shared = 0, kept = 0;  // found in this process; on disk
  std::vector<std::string> failures;
};
std::vector<ToolReport> toolchain_reports();  // of tools that were asked for something
std::string toolchain_cache_problem();        // why the last object is not on disk; empty: it is, or none was made
void end_toolchains() noexcept;               // of the process: no code is handed out any more
}  // namespace dovetail
