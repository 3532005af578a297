// Text for Windows, which takes UTF-16 in the functions that take every path.
#pragma once
#include <string>
#include <string_view>

#include "platform/windows/windows.hpp"

namespace dovetail::platform {
std::wstring to_wide(std::string_view utf8);
std::string to_utf8(std::wstring_view);
// An absolute path that is longer than the system's old limit of 260 gets the prefix that lifts it.
std::wstring to_wide_path(const std::string& path);
// "The specified module could not be found (error 126)"
std::string error_text(DWORD error);
inline std::string last_error() { return error_text(GetLastError()); }
}  // namespace dovetail::platform
