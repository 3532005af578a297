#include "device/log.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "error.hpp"
#include "text.hpp"

namespace dovetail {
constinit std::atomic<uint8_t> log_levels[kLogComponents] = {1, 1, 1, 1, 1, 1, 1};

namespace {
constexpr const char* components[kLogComponents] = {"loader", "dispatch", "trace", "memory",
                                                    "stream", "fallback", "plugin"};
constexpr const char* levels[] = {"", "warning", "info", "debug"};

void apply_item(const std::string& item, uint8_t (&to)[kLogComponents]) {
  const bool debug = item[0] == '+', off = item[0] == '-';
  const std::string name = item.substr(debug || off);
  const uint8_t level = debug ? 3 : off ? 0 : 2;
  if (name == "all") return std::fill(std::begin(to), std::end(to), level);
  const auto found = std::find(std::begin(components), std::end(components), name);
  if (found == std::end(components)) {
    std::vector<std::string> known(std::begin(components), std::end(components));
    known.push_back("all");
    throw Error(ErrorKind::value, "[logs] no component '" + name + "'" + did_you_mean(name, known));
  }
  to[found - std::begin(components)] = level;
}

const bool from_environment = [] {
  const char* spec = std::getenv("DOVETAIL_LOGS");
  try {
    if (spec) set_logs(spec);
  } catch (const Error& error) {  // a slip in a variable must not stop the program
    std::fprintf(stderr, "dovetail: warning: DOVETAIL_LOGS is ignored: %s\n", error.what());
  }
  return true;
}();
}  // namespace

void set_logs(const std::string& spec) {
  uint8_t to[kLogComponents];
  std::fill(std::begin(to), std::end(to), uint8_t{1});
  for (size_t at = 0; at < spec.size();) {
    const size_t end = std::min(spec.find(',', at), spec.size());
    std::string item = spec.substr(at, end - at);
    item.erase(std::remove(item.begin(), item.end(), ' '), item.end());
    if (!item.empty()) apply_item(item, to);
    at = end + 1;
  }
  for (int i = 0; i < kLogComponents; ++i) log_levels[i].store(to[i], std::memory_order_relaxed);
}

void log(Log component, int level, const std::string& message) {
  if (!logs(component, level)) return;
  const std::string line = std::string("dovetail[") + components[int(component)] + "] " +
                           levels[std::clamp(level, 1, 3)] + ": " + message + "\n";
  std::fwrite(line.data(), 1, line.size(),
              stderr);  // stderr has no buffer: one write, so lines of threads do not mix
}
}  // namespace dovetail
