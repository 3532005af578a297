// CUDA's atomics, for int, unsigned, unsigned long long, float and double. Blocks of one launch never run at the
// same time, those of different streams do.
#pragma once
#include <atomic>
#include <type_traits>

namespace emulator {
// old = *address; *address = change(old)
template <class T, class Change>
T atomic_update(T* address, Change change) {
  const std::atomic_ref<T> at(*address);
  T old = at.load(std::memory_order_relaxed);
  while (!at.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  return old;
}
template <class T>
using Same = std::type_identity_t<T>;
}  // namespace emulator

template <class T>
T atomicAdd(T* address, emulator::Same<T> value) {
  return emulator::atomic_update(address, [=](T old) { return T(old + value); });
}
template <class T>
T atomicMin(T* address, emulator::Same<T> value) {
  return emulator::atomic_update(address, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicMax(T* address, emulator::Same<T> value) {
  return emulator::atomic_update(address, [=](T old) { return value > old ? value : old; });
}
template <class T>
T atomicOr(T* address, emulator::Same<T> value) {
  return emulator::atomic_update(address, [=](T old) { return T(old | value); });
}
template <class T>
T atomicExch(T* address, emulator::Same<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* address, emulator::Same<T> expected, emulator::Same<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}

inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
