// A kernel's position, as text.
#pragma once
#include <cstring>
#include <source_location>
#include <string>
#include <string_view>

namespace emulator {
inline bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || !std::strcmp(a.file_name(), b.file_name()));
}

inline std::string place(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(where.line());
}
}  // namespace emulator
