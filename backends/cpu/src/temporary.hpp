// Memory for the duration of a call that may be as large as an operand: unlike scratch memory it is not kept.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace dovetail::cpu {
struct Free {
  void operator()(char* p) const { std::free(p); }
};
using Temporary = std::unique_ptr<char, Free>;

// Aligned to 64; nullptr if memory is out. The content is undefined.
inline Temporary temporary(size_t bytes) {
  return Temporary(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}
}  // namespace dovetail::cpu
