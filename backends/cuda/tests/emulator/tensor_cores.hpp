// Emulations of the instructions in src/kernels/common/mma.cuh, included by it. Fragments are written out
// here independently, from the PTX ISA: a kernel with a wrong layout gives wrong results.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

namespace gpu {
namespace emulated {
template <class T>
float element(uint32_t pair, int i) {
  return float(bit_cast<T>(uint16_t(pair >> 16 * i)));
}

template <class T>
struct Product {
  FragmentC* c;
  const FragmentA* a;
  const FragmentB* b;

  // Element (row, column) of A is in lane row % 8 * 4 + column % 8 / 2, in the register of its quadrant.
  static void compute(const emulator::WarpLanes<Product, int>& lanes) {
    float a[16][16], b[16][8];
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 16; ++column)
        a[row][column] =
            element<T>(lanes.operand(row % 8 * 4 + column % 8 / 2).a->x[row / 8 + column / 8 * 2], column % 2);
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column)
        b[row][column] = element<T>(lanes.operand(column * 4 + row % 8 / 2).b->x[row / 8], row % 2);
    for (int row = 0; row < 16; ++row) {
      float sum[8];
      const auto at = [&](int column) -> float& {
        return lanes.operand(row % 8 * 4 + column / 2).c->x[row / 8 * 2 + column % 2];
      };
      for (int column = 0; column < 8; ++column) sum[column] = at(column);
      for (int k = 0; k < 16; ++k)
        for (int column = 0; column < 8; ++column) sum[column] += a[row][k] * b[k][column];
      for (int column = 0; column < 8; ++column) at(column) = sum[column];
    }
  }
};

struct MatrixLoad {
  uint32_t* x;
  SharedAddress row;
  bool transposed;

  static void compute(const emulator::WarpLanes<MatrixLoad, int>& lanes) {
    for (uint32_t matrix = 0; matrix < 4; ++matrix) {
      uint16_t at[8][8];
      for (uint32_t row = 0; row < 8; ++row) {
        const SharedAddress address = lanes.operand(matrix * 8 + row).row;
        if (address % 16) lanes.fail(matrix * 8 + row, "gives an address that is no multiple of 16");
        std::memcpy(at[row], shared_pointer(address), 16);
      }
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t g = lane / 4, t = lane % 4 * 2;
        const MatrixLoad& to = lanes.operand(lane);
        to.x[matrix] =
            to.transposed ? at[t][g] | uint32_t(at[t + 1][g]) << 16 : at[g][t] | uint32_t(at[g][t + 1]) << 16;
      }
    }
  }
};

// The asynchronous copies of each thread of a block. A GPU makes them some time between the instruction and
// the wait. Here they are made as late as possible, to expose a missing wait, or with
// DOVETAIL_CUDA_EMULATED_COPIES=early at once, to expose reads of the values that they overwrite.
class Copies {
 public:
  static Copies& of_this_thread() {
    static thread_local std::vector<Copies> all(1024);
    return all[emulator::current_thread->number];
  }
  void add(SharedAddress to, const void* from, bool valid) {
    static const char* const when = std::getenv("DOVETAIL_CUDA_EMULATED_COPIES");
    static const bool early = when && std::string_view(when) == "early";
    if (to % 16 || (valid && reinterpret_cast<uintptr_t>(from) % 16))
      emulator::Multiprocessor::of_this_thread().fail(*emulator::current_thread, "cp.async of unaligned addresses");
    const Copy copy{to, valid ? from : nullptr};
    if (early) copy.make();
    else open_.push_back(copy);
  }
  void commit() { groups_.push_back(std::move(open_)), open_.clear(); }
  void wait(size_t pending) {
    while (groups_.size() > pending) {
      for (const Copy& copy : groups_.front()) copy.make();
      groups_.erase(groups_.begin());
    }
  }

 private:
  struct Copy {
    SharedAddress to;
    const void* from;
    void make() const {
      if (from) std::memcpy(shared_pointer(to), from, 16);
      else std::memset(shared_pointer(to), 0, 16);
    }
  };
  std::vector<Copy> open_;
  std::vector<std::vector<Copy>> groups_;
};
}  // namespace emulated

template <class T>
void mma(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  emulator::warp_collective<int>("mma.sync.m16n8k16", ~0u, emulated::Product<T>{&c, &a, &b},
                                 [](const auto& lanes) { emulated::Product<T>::compute(lanes); });
}
template <bool transposed = false>
void ldmatrix(uint32_t (&x)[4], SharedAddress row) {
  emulator::warp_collective<int>("ldmatrix", ~0u, emulated::MatrixLoad{x, row, transposed},
                                 [](const auto& lanes) { emulated::MatrixLoad::compute(lanes); });
}

inline void copy_async(SharedAddress to, const void* from, bool valid) {
  emulated::Copies::of_this_thread().add(to, from, valid);
}
inline void copy_async_commit() { emulated::Copies::of_this_thread().commit(); }
template <int pending>
void copy_async_wait() {
  emulated::Copies::of_this_thread().wait(pending);
}

template <class T>
uint32_t pack(float low, float high) {
  return T(low).bits | uint32_t(T(high).bits) << 16;
}
inline float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
inline float exp2_approximate(float x) { return flushed(std::exp2(flushed(x))); }
inline float log2_approximate(float x) { return std::log2(flushed(x)); }

template <class T>
T opaque(T x) {
  return x;
}
inline void store_shared(SharedAddress to, uint32_t x) { std::memcpy(shared_pointer(to), &x, sizeof x); }
inline uint4 load_shared(SharedAddress from) {
  uint4 x;
  std::memcpy(&x, shared_pointer(from), sizeof x);
  return x;
}
}  // namespace gpu
