// Operations in which the lanes of a warp exchange values: warp_collective, the base of the emulated mma,
// ldmatrix and others, and CUDA's shuffles and votes.
#pragma once
#include <bit>
#include <source_location>
#include <type_traits>

#include "device/multiprocessor.hpp"

namespace emulator {
// The lanes of a warp_collective when it is computed.
template <class Operand, class Result>
class WarpLanes {
 public:
  explicit WarpLanes(const Lanes& lanes) : lanes_(lanes) {}
  uint32_t mask() const { return lanes_.mask(); }  // the lanes that take part
  bool has(uint32_t lane) const { return lanes_.has(lane); }
  const Operand& operand(uint32_t lane) const { return *static_cast<const Operand*>(lanes_.deposit(lane).operand); }
  Result& result(uint32_t lane) const { return *static_cast<Result*>(lanes_.deposit(lane).result); }
  // Reports an invalid operand of this lane: ends the kernel, naming the thread.
  [[noreturn]] void fail(uint32_t lane, const char* what) const { lanes_.fail(lane, what); }

  template <class Body>
  void for_each(Body body) const {
    for (uint32_t rest = mask(); rest; rest &= rest - 1) body(uint32_t(std::countr_zero(rest)));
  }

 private:
  const Lanes& lanes_;
};

// Each lane of `mask` gives an operand; when all have, compute(const WarpLanes<Operand, Result>&) is called once
// and writes the result of each lane; each then returns its own. A product of matrices, for example, is
//
//   struct Operands { uint32_t a[4], b[2]; float c[4]; };
//   return emulator::warp_collective<Result>("mma.m16n8k16", ~0u, Operands{...},
//     [](const emulator::WarpLanes<Operands, Result>& lanes) {
//       for (uint32_t lane = 0; lane < 32; ++lane) ... lanes.operand(lane).a[0] ... lanes.result(lane).d[0] = ...;
//     }, where);
//
// `compute` captures nothing: what it needs comes with the operands. `where` is the place that messages name, by
// default the caller's own: a function in which kernels would not look passes its caller's on.
// It is an error, that ends the kernel with a message, if lanes of one mask meet in different operations or with
// different masks, or if one waits for a lane that waits elsewhere. Lanes that have returned are not waited for.
template <class Result, class Operand, class Compute>
Result warp_collective(const char* name, uint32_t mask, const Operand& operand, Compute,
                       std::source_location where = std::source_location::current()) {
  static_assert(std::is_empty_v<Compute>, "compute is called for all lanes: it captures nothing of one");
  Result result{};
  Multiprocessor::of_kernel().warp_operation(
      {name, mask, &operand, &result, [](const Lanes& lanes) { Compute{}(WarpLanes<Operand, Result>(lanes)); },
       where});
  return result;
}

template <class T>
struct Shuffle {
  T value;
  uint32_t source;  // the source lane
};

template <class T>
T shuffle(const char* name, uint32_t mask, T value, uint32_t source, const std::source_location& where) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA shuffles 4 or 8 bytes");
  return warp_collective<T>(
      name, mask, Shuffle<T>{value, source},
      [](const WarpLanes<Shuffle<T>, T>& lanes) {
        lanes.for_each([&](uint32_t lane) {
          const uint32_t from = lanes.operand(lane).source;
          if (!lanes.has(from)) lanes.fail(lane, "reads a lane that does not take part");
          lanes.result(lane) = lanes.operand(from).value;
        });
      },
      where);
}

// Lanes of one ballot: those whose predicate holds.
inline uint32_t ballot(const char* name, uint32_t mask, bool predicate, const std::source_location& where) {
  return warp_collective<uint32_t>(
      name, mask, predicate,
      [](const WarpLanes<bool, uint32_t>& lanes) {
        uint32_t votes = 0;
        lanes.for_each([&](uint32_t lane) { votes |= uint32_t(lanes.operand(lane)) << lane; });
        lanes.for_each([&](uint32_t lane) { lanes.result(lane) = votes; });
      },
      where);
}
inline uint32_t lane_of_this_thread() { return current_thread->lane(); }
}  // namespace emulator

#define EMULATOR_HERE std::source_location where = std::source_location::current()

inline void __syncthreads(EMULATOR_HERE) { emulator::Multiprocessor::of_kernel().block_barrier(where); }

inline void __syncwarp(uint32_t mask = ~0u, EMULATOR_HERE) { emulator::ballot("__syncwarp", mask, false, where); }

// Lanes of a `width`, a power of two, form a group; a source outside of it gives the lane's own value.
template <class T>
T __shfl_sync(uint32_t mask, T value, int source, int width = 32, EMULATOR_HERE) {
  const uint32_t group = emulator::lane_of_this_thread() & ~(uint32_t(width) - 1);
  return emulator::shuffle("__shfl_sync", mask, value, group | (uint32_t(source) & (uint32_t(width) - 1)), where);
}

template <class T>
T __shfl_up_sync(uint32_t mask, T value, uint32_t delta, int width = 32, EMULATOR_HERE) {
  const uint32_t lane = emulator::lane_of_this_thread(), within = lane & (uint32_t(width) - 1);
  return emulator::shuffle("__shfl_up_sync", mask, value, delta <= within ? lane - delta : lane, where);
}

template <class T>
T __shfl_down_sync(uint32_t mask, T value, uint32_t delta, int width = 32, EMULATOR_HERE) {
  const uint32_t lane = emulator::lane_of_this_thread(), within = lane & (uint32_t(width) - 1);
  return emulator::shuffle("__shfl_down_sync", mask, value, delta < uint32_t(width) - within ? lane + delta : lane,
                           where);
}

template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int bits, int width = 32, EMULATOR_HERE) {
  const uint32_t lane = emulator::lane_of_this_thread(), last = lane | (uint32_t(width) - 1);
  const uint32_t source = lane ^ uint32_t(bits);
  return emulator::shuffle("__shfl_xor_sync", mask, value, source <= last ? source : lane, where);
}

inline uint32_t __ballot_sync(uint32_t mask, bool predicate, EMULATOR_HERE) {
  return emulator::ballot("__ballot_sync", mask, predicate, where);
}
inline bool __any_sync(uint32_t mask, bool predicate, EMULATOR_HERE) {
  return emulator::ballot("__any_sync", mask, predicate, where) != 0;
}
inline bool __all_sync(uint32_t mask, bool predicate, EMULATOR_HERE) {
  return emulator::ballot("__all_sync", mask, !predicate, where) == 0;
}

// CUDA only promises that a lane runs with those of its mask. Here each runs alone, to expose kernels that
// expect all lanes of the same branch.
inline uint32_t __activemask() { return 1u << emulator::lane_of_this_thread(); }

#undef EMULATOR_HERE
