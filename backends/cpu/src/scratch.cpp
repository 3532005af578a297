#include "scratch.hpp"

#include <cstdlib>

namespace dovetail::cpu {
namespace {
struct Block {
  void* data = nullptr;
  size_t capacity = 0;
  ~Block() { std::free(data); }
};
}  // namespace

void* scratch(Scratch purpose, size_t bytes) {
  static thread_local Block blocks[size_t(Scratch::count)];
  Block& b = blocks[size_t(purpose)];
  if (b.data && bytes <= b.capacity) [[likely]]
    return b.data;
  std::free(b.data);
  b.capacity = (bytes + bytes / 4 + 4096) / 4096 * 4096;  // spare capacity: sizes tend to grow
  b.data = std::aligned_alloc(64, b.capacity);
  if (!b.data) b.capacity = 0;
  return b.data;
}
}  // namespace dovetail::cpu
