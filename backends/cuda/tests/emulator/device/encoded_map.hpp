// The result of this library's cuTensorMapEncodeTiled, which copies of tiles read.
#pragma once
#include <cstdint>

namespace emulator {
struct EncodedMap {
  uint64_t address;
  uint64_t strides[4];  // in bytes, of the axes from the second on
  uint32_t sizes[5], box[5];
  uint32_t rank, element_bytes;
};
static_assert(sizeof(EncodedMap) <= 128);
}  // namespace emulator
