// Environment variables that say yes or no.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace gpu {
inline bool is_set(const char* variable) {
  constexpr std::string_view yes[] = {"1", "on", "true", "yes"};
  const char* const text = std::getenv(variable);
  return text && std::ranges::find(yes, std::string_view(text)) != std::end(yes);
}
}  // namespace gpu
