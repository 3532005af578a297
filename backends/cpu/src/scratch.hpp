// Scratch memory for the duration of a call: one block per thread and purpose, kept for the next call.
#pragma once
#include <cstddef>

namespace dovetail::cpu {
enum class Scratch {
  operand_a,
  operand_b,
  rows,
  result,
  partial_result,
  kernel,
  kernel_2,
  onednn,
  lapack,
  group,
  count
};

// At least `bytes`, even of 0, aligned to 64; nullptr only if memory is out. The content is undefined, and a
// second request for the same purpose on the same thread invalidates the first.
void* scratch(Scratch purpose, size_t bytes);
}  // namespace dovetail::cpu
