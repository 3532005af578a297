// Paths are UTF-8 in the runtime. std::filesystem takes char for UTF-8 on some systems only.
#pragma once
#include <filesystem>
#include <string>

namespace dovetail::platform {
inline std::filesystem::path to_path(const std::string& utf8) { return std::u8string(utf8.begin(), utf8.end()); }
inline std::string from_path(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}
}  // namespace dovetail::platform
