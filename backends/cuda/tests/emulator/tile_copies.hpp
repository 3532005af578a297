// Emulations of the instructions in src/kernels/common/tma.cuh, included by it.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "device/encoded_map.hpp"
#include "spin.hpp"

#define __grid_constant__

namespace gpu {
namespace emulated {
// A barrier in shared memory.
struct Barrier {
  uint8_t sign, arrivals, pending, phase;
  int32_t bytes;  // expected, and not yet arrived

  static constexpr uint8_t initialised = 0x5B;
  static Barrier& at(SharedAddress address) {
    auto& barrier = *reinterpret_cast<Barrier*>(shared_pointer(address));
    if (address % 8 || barrier.sign != initialised)
      emulator::Multiprocessor::of_this_thread().fail(*emulator::current_thread, "an mbarrier that is none");
    return barrier;
  }
  void arrive() {
    if (!pending)
      emulator::Multiprocessor::of_this_thread().fail(*emulator::current_thread,
                                                      "an arrival too many at an mbarrier");
    --pending, flip();
  }
  void come(int32_t n) { bytes -= n, flip(); }

 private:
  void flip() {
    if (!pending && !bytes) pending = arrivals, phase ^= 1;
  }
};
static_assert(sizeof(Barrier) == 8);

// Copies in progress: each is made when a thread must wait for its barrier or, with
// DOVETAIL_CUDA_EMULATED_COPIES=early, at once. The 128-byte swizzle exchanges bits 4 to 6 of an address by 7
// to 9.
struct TileCopy {
  SharedAddress to, barrier;
  const emulator::EncodedMap* map;
  int at[4];

  void make() const {
    const emulator::EncodedMap& m = *map;
    for (uint32_t row = 0; row < m.box[1]; ++row)
      for (uint32_t column = 0; column < m.box[0]; ++column) {
        const SharedAddress linear = to + row * 128 + column * 2;
        std::memcpy(shared_pointer(linear ^ (linear >> 7 & 7) << 4), element(int(column), int(row)), 2);
      }
    Barrier::at(barrier).come(int32_t(m.box[0] * m.box[1] * 2));
  }

 private:
  const void* element(int column, int row) const {
    static constexpr uint16_t zero = 0;
    const int64_t index[4] = {at[0] + column, at[1] + row, at[2], at[3]};
    uint64_t address = map->address + uint64_t(index[0] * 2);
    for (int axis = 0; axis < 4; ++axis) {
      if (index[axis] < 0 || index[axis] >= int64_t(map->sizes[axis])) return &zero;
      if (axis) address += uint64_t(index[axis]) * map->strides[axis - 1];
    }
    return reinterpret_cast<const void*>(address);
  }
};

class TileCopies {
 public:
  static TileCopies& of_this_block() {
    static thread_local TileCopies all;
    return all;
  }
  void begin(const TileCopy& copy) {
    static const char* const when = std::getenv("DOVETAIL_CUDA_EMULATED_COPIES");
    static const bool early = when && std::string_view(when) == "early";
    if (copy.to % 1024)
      emulator::Multiprocessor::of_this_thread().fail(*emulator::current_thread,
                                                      "a swizzled tile that does not begin at 1024 bytes");
    if (early) copy.make();
    else begun_.push_back(copy);
  }
  // Makes one copy that arrives at the barrier; false if there is none.
  bool finish_one(SharedAddress barrier) {
    const auto it = std::find_if(begun_.begin(), begun_.end(), [&](const auto& c) { return c.barrier == barrier; });
    if (it == begun_.end()) return false;
    const TileCopy copy = *it;
    begun_.erase(it);
    return copy.make(), true;
  }

 private:
  std::vector<TileCopy> begun_;
};
}  // namespace emulated

inline void barrier_init(SharedAddress barrier, int arrivals) {
  const emulated::Barrier made{emulated::Barrier::initialised, uint8_t(arrivals), uint8_t(arrivals), 0, 0};
  std::memcpy(shared_pointer(barrier), &made, sizeof made);
}
inline void barrier_init_done() {}
inline void barrier_arrive(SharedAddress barrier) { emulated::Barrier::at(barrier).arrive(); }
inline void barrier_arrive_expecting(SharedAddress barrier, uint32_t bytes) {
  emulated::Barrier::at(barrier).bytes += int32_t(bytes);
  emulated::Barrier::at(barrier).arrive();
}
inline void barrier_wait(SharedAddress barrier, uint32_t phase) {
  emulator::spin("mbarrier.try_wait", [=] {
    while (emulated::Barrier::at(barrier).phase == phase)
      if (!emulated::TileCopies::of_this_block().finish_one(barrier)) return false;
    return true;
  });
}
inline void copy_tile(SharedAddress to, const TensorMap& map, SharedAddress barrier, int column, int row, int head,
                      int batch) {
  const auto* encoded = reinterpret_cast<const emulator::EncodedMap*>(&map);
  emulated::TileCopies::of_this_block().begin({to, barrier, encoded, {column, row, head, batch}});
}
}  // namespace gpu
