// CUDA's small vectors, aligned as in CUDA: the units of kernels' loads.
#pragma once

namespace emulator {
template <class T, unsigned n>
inline constexpr unsigned vector_alignment = n == 3               ? alignof(T)
                                             : n * sizeof(T) > 16 ? 16
                                                                  : n * sizeof(T);
}

#define EMULATOR_VECTORS(T, name)                                             \
  struct alignas(emulator::vector_alignment<T, 2>) name##2 { T x, y; };       \
  struct name##3 { T x, y, z; };                                              \
  struct alignas(emulator::vector_alignment<T, 4>) name##4 { T x, y, z, w; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                  \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }          \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATOR_VECTORS(signed char, char)
EMULATOR_VECTORS(unsigned char, uchar)
EMULATOR_VECTORS(short, short)
EMULATOR_VECTORS(unsigned short, ushort)
EMULATOR_VECTORS(int, int)
EMULATOR_VECTORS(unsigned, uint)
EMULATOR_VECTORS(long long, longlong)
EMULATOR_VECTORS(unsigned long long, ulonglong)
EMULATOR_VECTORS(float, float)
EMULATOR_VECTORS(double, double)
#undef EMULATOR_VECTORS
