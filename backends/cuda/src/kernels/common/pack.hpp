// Neighbours that are read or written at once. Shared with the host.
#pragma once

namespace gpu {
inline constexpr int pack_bytes = 16;  // of the widest access that GPUs have
}  // namespace gpu
