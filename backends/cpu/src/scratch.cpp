#include "scratch.hpp"

#include <new>

namespace dovetail::cpu {
namespace {
constexpr std::align_val_t kAlign{64};
struct Block {
  void* data = nullptr;
  size_t capacity = 0;
  ~Block() { ::operator delete(data, kAlign); }
};
}  // namespace

void* scratch(Scratch purpose, size_t bytes) {
  static thread_local Block blocks[size_t(Scratch::count)];
  Block& b = blocks[size_t(purpose)];
  if (b.data && bytes <= b.capacity) [[likely]]
    return b.data;
  ::operator delete(b.data, kAlign);
  b.capacity = (bytes + bytes / 4 + 4096) / 4096 * 4096;  // spare capacity: sizes tend to grow
  b.data = ::operator new(b.capacity, kAlign, std::nothrow);
  if (!b.data) b.capacity = 0;
  return b.data;
}
}  // namespace dovetail::cpu
