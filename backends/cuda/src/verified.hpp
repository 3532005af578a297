// Which kernels have run on a GPU and passed the conformance suite there. The rest is left out of the kernel table
// unless DOVETAIL_CUDA_UNVERIFIED=1.
#pragma once
#include <algorithm>
#include <iterator>
#include <string_view>

#include "settings.hpp"

namespace gpu {
// Files of src/kernels, and "groups" for those of compiled functions. None so far: nothing of this backend has run
// on a GPU.
inline constexpr std::string_view verified_families[] = {""};

inline bool unverified_allowed() { return is_set("DOVETAIL_CUDA_UNVERIFIED"); }
inline bool is_verified(std::string_view family) {
  return unverified_allowed() || std::ranges::find(verified_families, family) != std::end(verified_families);
}
inline bool is_anything_verified() { return unverified_allowed() || std::size(verified_families) > 1; }
}  // namespace gpu
