// Packs: adjacent elements that a thread reads or writes at once; and how many of them a thread keeps in registers.
// Shared with the host.
#pragma once

namespace gpu {
inline constexpr int pack_bytes = 16;  // of the widest access that GPUs have

// How much of a row fits into the registers of its threads.
inline constexpr int most_register_threads = 512;  // threads of a row: they have 128 registers each

// Packs of 16 bytes, of elements of so many bytes, that a thread holds: 32 registers of what it computes with.
constexpr int register_packs(int element_bytes) { return element_bytes == 2 ? 4 : 8; }
}  // namespace gpu
