#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
constexpr size_t kLongest = 240;  // of a path; folders allow 12 characters less than the 260 of files
}

std::wstring to_wide(std::string_view utf8) {
  std::wstring wide(utf8.size(), L'\0');  // never more units than bytes
  const int n = utf8.empty()
                    ? 0
                    : MultiByteToWideChar(CP_UTF8, 0, utf8.data(), int(utf8.size()), wide.data(), int(wide.size()));
  wide.resize(size_t(n));
  return wide;
}

std::string to_utf8(std::wstring_view wide) {
  std::string utf8(3 * wide.size(), '\0');
  const int n = wide.empty() ? 0
                             : WideCharToMultiByte(CP_UTF8, 0, wide.data(), int(wide.size()), utf8.data(),
                                                   int(utf8.size()), nullptr, nullptr);
  utf8.resize(size_t(n));
  return utf8;
}

std::wstring to_wide_path(const std::string& path) {
  std::wstring wide = to_wide(path);
  if (wide.size() < kLongest || wide.starts_with(L"\\\\?\\")) return wide;
  std::wstring full(wide.size() + MAX_PATH, L'\0');
  DWORD n = GetFullPathNameW(wide.c_str(), DWORD(full.size()), full.data(), nullptr);
  if (n > full.size()) {
    full.resize(n);
    n = GetFullPathNameW(wide.c_str(), n, full.data(), nullptr);
  }
  if (!n || n >= full.size()) return wide;
  full.resize(n);
  return full.starts_with(L"\\\\") ? L"\\\\?\\UNC" + full.substr(1) : L"\\\\?\\" + full;
}

std::string error_text(DWORD error) {
  wchar_t text[512];
  DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, error, 0, text, 512,
                           nullptr);
  while (n && (text[n - 1] <= L' ' || text[n - 1] == L'.')) --n;
  return to_utf8({text, n}) + (n ? " (error " : "(error ") + std::to_string(error) + ")";
}
}  // namespace dovetail::platform
