#include "text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <utility>

namespace dovetail {
namespace {
// Levenshtein's distance.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
  }
  return row.back();
}
}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  if (known.empty()) return "; none is known";
  const auto best = std::min_element(known.begin(), known.end(),
                                     [&](auto& a, auto& b) { return distance(word, a) < distance(word, b); });
  if (distance(word, *best) <= 1 + word.size() / 3) return ", did you mean '" + *best + "'?";
  if (known.size() > 20) return "";
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "; known: " : ", ") + k;
  return list;
}

std::string to_string(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string to_string(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string human_bytes(uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}
}  // namespace dovetail
