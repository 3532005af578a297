// Emulations of the instructions in src/kernels/common/wgmma.cuh, included by it. Products are computed at
// the wait: without a wait there is no result, and operands that change meanwhile give wrong results.
#pragma once
#include <array>
#include <vector>

#include "spin.hpp"

namespace gpu {
namespace emulated {
// A matrix descriptor, as the PTX ISA documents it: canonical layouts of the 128-byte swizzle.
struct Descriptor {
  uint64_t bits;

  SharedAddress begin() const { return SharedAddress(bits & 0x3FFF) << 4; }
  SharedAddress leading() const { return SharedAddress(bits >> 16 & 0x3FFF) << 4; }
  SharedAddress stride() const { return SharedAddress(bits >> 32 & 0x3FFF) << 4; }
  // Element k of row, or column, i.
  template <class T>
  float at(bool across_k, uint32_t i, uint32_t k) const {
    const SharedAddress linear =
        begin() + (across_k ? i / 64 * leading() + k / 8 * stride() + k % 8 * 128 + i % 64 * 2
                            : i / 8 * stride() + i % 8 * 128 + k * 2);
    uint16_t element;
    std::memcpy(&element, shared_pointer(linear ^ (linear >> 7 & 7) << 4), 2);
    return float(bit_cast<T>(element));
  }
};

struct GroupProduct {
  FragmentC* c;
  const FragmentA* a;  // nullptr: the descriptor
  Descriptor a_matrix, b_matrix;
  uint32_t columns, warp;
  bool add;

  // A warp's share: 16 rows.
  template <class T>
  static void compute(const emulator::WarpLanes<GroupProduct, int>& lanes) {
    const GroupProduct& first = lanes.operand(0);
    for (uint32_t lane = 1; lane < 32; ++lane)
      if (lanes.operand(lane).b_matrix.bits != first.b_matrix.bits || lanes.operand(lane).add != first.add)
        lanes.fail(lane, "gives another descriptor than its warp");
    float b[16][128];
    for (uint32_t k = 0; k < 16; ++k)
      for (uint32_t n = 0; n < first.columns; ++n) b[k][n] = first.b_matrix.at<T>(first.a != nullptr, n, k);
    for (uint32_t row = 0; row < 16; ++row) {
      float sum[128] = {};
      const auto at = [&](uint32_t n) -> float& {
        return lanes.operand(row % 8 * 4 + n % 8 / 2).c[n / 8].x[row / 8 * 2 + n % 2];
      };
      for (uint32_t n = 0; first.add && n < first.columns; ++n) sum[n] = at(n);
      for (uint32_t k = 0; k < 16; ++k) {
        const float a = first.a
                            ? element<T>(lanes.operand(row % 8 * 4 + k % 8 / 2).a->x[row / 8 + k / 8 * 2], k % 2)
                            : first.a_matrix.at<T>(false, first.warp % 4 * 16 + row, k);
        for (uint32_t n = 0; n < first.columns; ++n) sum[n] += a * b[k][n];
      }
      for (uint32_t n = 0; n < first.columns; ++n) at(n) = sum[n];
    }
  }
};

// A thread's products in progress.
class GroupProducts {
 public:
  struct Begun {
    GroupProduct product;
    void (*make)(const GroupProduct&);
  };
  static GroupProducts& of_this_thread() {
    static thread_local std::vector<GroupProducts> all(1024);
    return all[emulator::current_thread->number];
  }
  template <class T>
  void begin(const GroupProduct& product) {
    open_.push_back({product, [](const GroupProduct& p) {
                       emulator::warp_collective<int>("wgmma", ~0u, p,
                                                      [](const auto& lanes) { GroupProduct::compute<T>(lanes); });
                     }});
  }
  void commit() { groups_.push_back(std::move(open_)), open_.clear(); }
  void wait(size_t pending) {
    while (groups_.size() > pending) {
      const auto group = std::move(groups_.front());
      groups_.erase(groups_.begin());
      for (const Begun& begun : group) begun.make(begun.product);
    }
  }

 private:
  std::vector<Begun> open_;
  std::vector<std::vector<Begun>> groups_;
};

// All are reset when a block ends.
struct NamedBarrier {
  int arrived = 0;
  uint32_t generation = 0;

  static NamedBarrier& numbered(int i) {
    static thread_local std::array<NamedBarrier, 16> all;
    return all.at(size_t(i));
  }
  void arrive(int threads) {
    if (++arrived == threads) arrived = 0, ++generation;
  }
};
}  // namespace emulated

inline void wgmma_begin() {}
inline void wgmma_commit() { emulated::GroupProducts::of_this_thread().commit(); }
template <int n>
void settle(FragmentC (&)[1][n]) {}
template <int pending, int n>
void wgmma_wait(FragmentC (&)[1][n]) {
  emulated::GroupProducts::of_this_thread().wait(pending);
}
template <class T, int n>
void wgmma(FragmentC (&c)[1][n], MatrixDescriptor a, MatrixDescriptor b, bool add) {
  emulated::GroupProducts::of_this_thread().begin<T>(
      {c[0], nullptr, {a.bits}, {b.bits}, n * 8, emulator::current_thread->number / 32, add});
}
template <class T, int n>
void wgmma(FragmentC (&c)[1][n], const FragmentA& a, MatrixDescriptor b) {
  emulated::GroupProducts::of_this_thread().begin<T>(
      {c[0], &a, {}, {b.bits}, n * 8, emulator::current_thread->number / 32, true});
}

template <int registers>
void take_registers() {}
template <int registers>
void leave_registers() {}

inline void named_barrier_arrive(int barrier, int threads) {
  emulated::NamedBarrier::numbered(barrier).arrive(threads);
}
inline void named_barrier_sync(int barrier, int threads) {
  emulated::NamedBarrier& b = emulated::NamedBarrier::numbered(barrier);
  const uint32_t before = b.generation;
  b.arrive(threads);
  emulator::spin("bar.sync", [&] { return b.generation != before; });
}
}  // namespace gpu
