#include "text.hpp"

#include <algorithm>
#include <charconv>
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

// The bytes of the character that `text` begins with; 0 where it is not UTF-8.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (!size || size > text.size() || byte(0) > 0xf4) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) >= 0xa0, too_large = byte(0) == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : size;
}

bool is_control(std::string_view c) {  // of ASCII, or U+0080 to U+009F
  const auto first = static_cast<unsigned char>(c[0]);
  if (c.size() == 1) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(c[1]) < 0xa0;
}
}  // namespace

std::string cleaned(std::string_view text, size_t most) {
  std::string clean;
  while (!text.empty()) {
    const size_t size = character(text);
    const std::string_view c = text.substr(0, std::max<size_t>(size, 1));
    if (clean.size() + c.size() > most) return clean + "...";
    clean += size && !is_control(c) ? c : "?";
    text.remove_prefix(c.size());
  }
  return clean;
}

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
  char text[32];  // not snprintf: in some locales it writes a comma
  const auto written =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, unit && value < 100);
  return std::string(text, written.ptr) + " " + units[unit];
}
}  // namespace dovetail
