// The environment variables of the accelerator and its faults.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <locale>
#include <sstream>

#include "driver.hpp"
#include "name.hpp"

namespace driver {
namespace {
// "MEMORY" is DOVETAIL_SIM_MEMORY.
std::string variable(const char* what) {
  std::string name = "DOVETAIL_" + std::string(backend_name) + "_" + what;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return name;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == at) parts.emplace_back();
    else parts.back() += c;
  return parts;
}

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit bytes[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
constexpr Unit times[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit plain[] = {{"", 1}};

// A number of at least `least`, followed by one of the units.
template <size_t N>
std::optional<double> number(const std::string& text, const Unit (&units)[N], double least) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());  // not strtod: in some locales it expects a comma
  double value = 0;
  if (!(in >> value)) return {};
  std::string rest;
  std::getline(in, rest);
  for (const Unit& unit : units)
    if (rest == unit.name && value >= least && value < 1e15) return value * unit.factor;
  return {};
}

std::optional<Settings::Fault> fault(std::string text) {
  Settings::Fault f{};
  f.times = UINT64_MAX;
  if (const size_t at = text.rfind('@'); at != std::string::npos) {
    const auto chip = number(text.substr(at + 1), plain, 0);
    if (!chip) return {};
    f.chip = uint32_t(*chip);
    text.resize(at);
  }
  const std::vector<std::string> part = split(text, ':');
  const bool counted = part.size() == 2 || (part.size() == 3 && part[0] == "oom");
  if ((part[0] == "oom" || part[0] == "lost") && counted) {
    const auto first = number(part[1], plain, 1), times = number(part.size() == 3 ? part[2] : "1", plain, 1);
    if (!first || !times) return {};
    f.kind = part[0] == "oom" ? f.oom : f.lost;
    f.first = uint64_t(*first);
    if (part.size() == 3) f.times = uint64_t(*times);
    return f;
  }
  if ((part[0] == "delay" || part[0] == "hold") && part.size() == 3) {
    const auto queue = number(part[1], plain, 0), time = number(part[2], ::driver::times, 0);
    if (queue) f.queue = uint32_t(*queue);
    if ((!queue && part[1] != "*") || (!time && part[0] == "delay")) return {};
    f.kind = part[0] == "delay" ? f.delay : f.hold;
    f.time = Duration(int64_t(time.value_or(0)));
    f.file = part[2];
    return f;
  }
  return {};
}

Settings read() {
  Settings s;
  // Passes the variable's text to `use`, which returns whether it is valid.
  const auto setting = [&](const char* what, const char* expected, auto use) {
    const std::string name = variable(what);
    const char* text = std::getenv(name.c_str());
    if (!text || !*text || use(std::string(text))) return;
    s.error = name + ": expected " + expected + ", got \"" + text + "\"; correct or unset it";
  };
  const auto into = [](auto& to, std::optional<double> value) {
    if (value) to = std::decay_t<decltype(to)>(*value);
    return value.has_value();
  };
  setting("DEVICES", "1 to 8", [&](auto text) { return into(s.chips, number(text, plain, 1)) && s.chips <= 8; });
  setting("MEMORY", "bytes, at least 1MiB, as 64MiB",
          [&](auto text) { return into(s.memory, number(text, bytes, 1)) && s.memory >= 1 << 20; });
  setting("LATENCY_US", "microseconds", [&](auto text) {
    const auto us = number(text, plain, 0);
    s.latency = Duration(int64_t(us.value_or(0) * 1e3));
    return us.has_value();
  });
  setting("BANDWIDTH_GBS", "gigabytes per second",
          [&](auto text) { return into(s.bandwidth, number(text, plain, 1e-6)); });
  setting("FAULT", "oom:N[:TIMES], lost:N, delay:STREAM:TIME or hold:STREAM:FILE, each with or without @DEVICE",
          [&](auto text) {
            for (const std::string& one : split(text, ',')) {
              const auto f = fault(one);
              if (!f) return false;
              s.faults.push_back(*f);
            }
            return true;
          });
  s.memory = s.memory / 4096 * 4096;
  return s;
}
}  // namespace

const Settings& settings() {
  static const Settings& s = *new Settings(read());
  return s;
}
}  // namespace driver
