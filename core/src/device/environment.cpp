#include "device/environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "device/log.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
// Once for each value: some are read again and again.
void ignore(const char* name, const std::string& expected, const std::string& got) {
  static std::mutex mutex;
  static std::set<std::string> ignored;
  {
    const std::lock_guard guard(mutex);
    if (!ignored.insert(name + ('=' + got)).second) return;
  }
  log(Log::loader, 1,
      std::string(name) + " is ignored: expected " + expected + ", got '" + cleaned(got, 64) +
          "'; correct it or unset " + name);
}
}  // namespace

bool environment_switch(const char* name, bool otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  std::string value = text;
  std::transform(value.begin(), value.end(), value.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  for (const char* yes : {"1", "on", "true", "yes"})
    if (value == yes) return true;
  for (const char* no : {"0", "off", "false", "no"})
    if (value == no) return false;
  ignore(name, "0 or 1", text);
  return otherwise;
}

uint32_t environment_number(const char* name, uint32_t least, uint32_t most, uint32_t otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  const std::string value = text;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size() && number >= least && number <= most)
    return number;
  ignore(name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most), value);
  return otherwise;
}

double environment_seconds(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  const std::string value = text;
  double seconds = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error == std::errc() && end == value.data() + value.size() && seconds >= 0 && seconds <= 1e6) return seconds;
  ignore(name, "seconds from 0 to 1000000", value);
  return otherwise;
}

bool environment_leaves_on(const char* name, std::string_view item, std::span<const std::string_view> known) {
  const char* text = std::getenv(name);
  bool on = true;
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (entry.empty()) continue;
    if (entry[0] != '-' || std::ranges::find(known, entry.substr(1)) == known.end()) {
      std::string expected;
      for (const std::string_view k : known) expected += (expected.empty() ? "-" : ",-") + std::string(k);
      ignore(name, "a list of some of " + expected, std::string(entry));
    } else if (entry.substr(1) == item) {
      on = false;
    }
  }
  return on;
}
}  // namespace dovetail
