// Boolean environment variables of this backend.
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

// May float32 products and convolutions be computed with TF32's 10 bits of mantissa? They are up to eight times
// faster on tensor cores, and no longer float32.
inline bool allows_tf32() {
  static const bool allowed = is_set("DOVETAIL_CUDA_ALLOW_TF32");
  return allowed;
}
}  // namespace gpu
