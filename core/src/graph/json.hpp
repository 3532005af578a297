// JSON as programs are written in: integers of 64 bits and reals are apart, objects keep the order of their members.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dovetail {
struct Json {
  enum Kind : uint8_t { null, boolean, integer, unsigned_integer, real, string, array, object };
  Kind kind = null;
  bool truth = false;
  int64_t i = 0;   // of an integer
  uint64_t u = 0;  // of one beyond int64
  double f = 0;
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;

  Json() = default;
  Json(bool b) : kind(boolean), truth(b) {}
  Json(int n) : kind(integer), i(n) {}
  Json(int64_t n) : kind(integer), i(n) {}
  Json(uint64_t n) : kind(n >> 63 ? unsigned_integer : integer), i(int64_t(n)), u(n) {}
  Json(double x) : kind(real), f(x) {}
  Json(std::string s) : kind(string), text(std::move(s)) {}
  Json(const char* s) : kind(string), text(s) {}
  static Json list(std::vector<Json> items = {});
  static Json map(std::vector<std::pair<std::string, Json>> members = {});

  // Each throws Error(value) where the value is something else; `what` names it in the message.
  int64_t as_integer(const char* what) const;
  double as_real(const char* what) const;  // also "inf", "-inf", "nan"
  const std::string& as_string(const char* what) const;
  const std::vector<Json>& as_list(const char* what) const;
  const Json* find(std::string_view key) const;  // a member of an object; nullptr
  const Json& at(std::string_view key, const char* what) const;

  std::string dump() const;  // without white space; a real has a point, an exponent, or is "inf", "-inf", "nan"
};

// Throws Error(value) with the place where the text is no JSON, is nested more than 64 deep, or repeats a key.
Json parse_json(std::string_view text);
}  // namespace dovetail
