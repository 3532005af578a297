// Indices in operands: negative ones count from the end, and all must be in range.
#pragma once
#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
DOVETAIL_CPU_INLINE int64_t wrapped(int64_t index, int64_t size) { return index + (size & (index >> 63)); }
DOVETAIL_CPU_INLINE bool on_axis(int64_t index, int64_t size) { return index >= -size && index < size; }

inline dvt_status fail_index(const char* op, int64_t index, int64_t axis, int64_t size) {
  return DVT_FAIL(DVT_INDEX, "[%s] index %lld is out of range: axis %lld has %lld elements, expected %lld to %lld",
                  op, static_cast<long long>(index), static_cast<long long>(axis), static_cast<long long>(size),
                  static_cast<long long>(-size), static_cast<long long>(size - 1));
}

// Checks all n indices; fails at the first that is out of range.
inline dvt_status check_indices(const char* op, const int64_t* index, int64_t n, int64_t axis, int64_t size) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= on_axis(index[i], size);
  if (good) return DVT_OK;
  while (on_axis(*index, size)) ++index;
  return fail_index(op, *index, axis, size);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
