#include "graph/json.hpp"

#include <charconv>
#include <cmath>
#include <unordered_set>

#include "error.hpp"

namespace dovetail {
Json Json::list(std::vector<Json> items) {
  Json j;
  j.kind = array, j.items = std::move(items);
  return j;
}
Json Json::map(std::vector<std::pair<std::string, Json>> members) {
  Json j;
  j.kind = object, j.members = std::move(members);
  return j;
}

// ---- reading a value --------------------------------------------------------------------------------------------
namespace {
[[noreturn]] void wrong(const char* what, const char* expected) {
  throw Error(ErrorKind::value, std::string(what) + ": expected " + expected);
}
}  // namespace

int64_t Json::as_integer(const char* what) const {
  if (kind != integer) wrong(what, "an integer of 64 bits");
  return i;
}
double Json::as_real(const char* what) const {
  if (kind == real) return f;
  if (kind == string && text == "inf") return INFINITY;
  if (kind == string && text == "-inf") return -INFINITY;
  if (kind == string && text == "nan") return NAN;
  wrong(what, "a real number");
}
const std::string& Json::as_string(const char* what) const {
  if (kind != string) wrong(what, "a string");
  return text;
}
const std::vector<Json>& Json::as_list(const char* what) const {
  if (kind != array) wrong(what, "a list");
  return items;
}
const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}
const Json& Json::at(std::string_view key, const char* what) const {
  if (const Json* found = find(key)) return *found;
  throw Error(ErrorKind::value, std::string(what) + ": expected a member '" + std::string(key) + "'");
}

// ---- writing ----------------------------------------------------------------------------------------------------
namespace {
void write_string(std::string& to, const std::string& text) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') (to += '\\') += c;
    else if (uint8_t(c) < 0x20) {
      const char* digits = "0123456789abcdef";
      to += "\\u00";
      (to += digits[uint8_t(c) >> 4]) += digits[uint8_t(c) & 15];
    } else {
      to += c;
    }
  }
  to += '"';
}

void write_real(std::string& to, double x) {
  if (std::isnan(x)) return void(to += "\"nan\"");
  if (std::isinf(x)) return void(to += x < 0 ? "\"-inf\"" : "\"inf\"");
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  const std::string_view digits(buffer, size_t(end - buffer));
  to += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) to += ".0";
}

void write(std::string& to, const Json& j) {
  const char* separator = "";
  switch (j.kind) {
    case Json::null: to += "null"; break;
    case Json::boolean: to += j.truth ? "true" : "false"; break;
    case Json::integer: to += std::to_string(j.i); break;
    case Json::unsigned_integer: to += std::to_string(j.u); break;
    case Json::real: write_real(to, j.f); break;
    case Json::string: write_string(to, j.text); break;
    case Json::array:
      to += '[';
      for (const Json& item : j.items) to += separator, write(to, item), separator = ",";
      to += ']';
      break;
    case Json::object:
      to += '{';
      for (const auto& [name, value] : j.members) {
        to += separator, write_string(to, name), to += ':', write(to, value);
        separator = ",";
      }
      to += '}';
  }
}
}  // namespace

std::string Json::dump() const {
  std::string text;
  write(text, *this);
  return text;
}

// ---- parsing ----------------------------------------------------------------------------------------------------
namespace {
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json document() {
    Json j = value(0);
    skip_space();
    if (at_ < text_.size()) fail("text after the end of the value");
    return j;
  }

 private:
  static constexpr int kMostDepth = 64;
  static constexpr size_t kFewMembers = 16;

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::value, "JSON at byte " + std::to_string(at_) + ": " + why);
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(int depth) {
    if (depth > kMostDepth) fail("nested too deep: expected at most 64 levels");
    skip_space();
    if (at_ >= text_.size()) fail("the text ends too early");
    if (take_word("null")) return {};
    if (take_word("true")) return Json(true);
    if (take_word("false")) return Json(false);
    if (text_[at_] == '"') return Json(quoted());
    if (take('[')) return list(depth);
    if (take('{')) return members(depth);
    return number();
  }

  Json list(int depth) {
    Json j = Json::list();
    if (take(']')) return j;
    do j.items.push_back(value(depth + 1));
    while (take(','));
    if (!take(']')) fail("expected , or ]");
    return j;
  }

  Json members(int depth) {
    Json j = Json::map();
    if (take('}')) return j;
    std::unordered_set<std::string> names;  // of an object with so many that looking for each in all takes long
    do {
      skip_space();
      if (at_ >= text_.size() || text_[at_] != '"') fail("expected a name in quotation marks");
      std::string name = quoted();
      if (j.members.size() == kFewMembers)
        for (const auto& member : j.members) names.insert(member.first);
      const bool known = j.members.size() < kFewMembers ? j.find(name) != nullptr : !names.insert(name).second;
      if (known) fail("the name '" + name + "' for the second time");
      if (!take(':')) fail("expected :");
      j.members.emplace_back(std::move(name), value(depth + 1));
    } while (take(','));
    if (!take('}')) fail("expected , or }");
    return j;
  }

  std::string quoted() {
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      const char c = text_[at_];
      if (uint8_t(c) < 0x20) fail("a control character in a string");
      if (c != '\\') out += c;
      else escape(out);
    }
    if (at_ >= text_.size()) fail("a string without an end");
    ++at_;
    return out;
  }

  void escape(std::string& out) {
    if (++at_ >= text_.size()) fail("the text ends too early");
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const auto known = from.find(text_[at_]); known != std::string_view::npos) return void(out += to[known]);
    if (text_[at_] != 'u') fail("an unknown escape");
    uint32_t code = four_digits();
    if (code >= 0xDC00 && code < 0xE000) fail("the second half of a surrogate pair alone");
    if (code >= 0xD800 && code < 0xDC00) {
      const bool more = text_.substr(at_ + 1, 2) == "\\u";
      at_ += more ? 2 : 0;
      const uint32_t low = more ? four_digits() : 0;
      if (low < 0xDC00 || low >= 0xE000) fail("the first half of a surrogate pair alone");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
  }

  // Those behind the u of an escape; ends at the last one.
  uint32_t four_digits() {
    uint32_t code = 0;
    const char* digits = text_.data() + at_ + 1;
    if (at_ + 4 >= text_.size() || std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4)
      fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  static void append_utf8(std::string& out, uint32_t code) {
    if (code < 0x80) return void(out += char(code));
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    out += char(lead[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; --i) out += char(0x80 | (code >> 6 * i & 63));
  }

  Json number() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view("+-.0123456789eE").find(text_[at_]) != std::string_view::npos)
      ++at_;
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    if (first == last) fail("expected a value");
    const std::string_view digits(first, size_t(last - first));
    if (digits.find_first_of(".eE") != std::string_view::npos) {
      double x = 0;
      const auto read = std::from_chars(first, last, x);
      if (read.ptr != last || read.ec != std::errc()) fail("no number");
      return Json(x);
    }
    int64_t i = 0;
    if (const auto read = std::from_chars(first, last, i); read.ptr == last && read.ec == std::errc())
      return Json(i);
    uint64_t u = 0;
    const auto read = std::from_chars(first, last, u);
    if (read.ptr != last || read.ec != std::errc()) fail("no number, or an integer of more than 64 bits");
    return Json(u);
  }

  std::string_view text_;
  size_t at_ = 0;
};
}  // namespace

Json parse_json(std::string_view text) { return Parser(text).document(); }
}  // namespace dovetail
