// Logs in the manner of TORCH_LOGS: DOVETAIL_LOGS="+dispatch,-loader".
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace dovetail {
enum class Log : uint8_t { loader, dispatch, trace, memory, stream, fallback, plugin };
constexpr int kLogComponents = 7;
extern std::atomic<uint8_t> log_levels[kLogComponents];  // per component: 0 off, 1 warnings, 2 info, 3 debug
inline bool logs(Log component, int level = 2) {
  return log_levels[int(component)].load(std::memory_order_relaxed) >= level;
}
// One line on stderr, where the component's level asks for it.
void log(Log component, int level, const std::string& message);
// "" restores the default (warnings of every component). "+x": debug, "x": info, "-x": off; "all" stands for every
// component. Throws Error(value).
void set_logs(const std::string& spec);
}  // namespace dovetail
