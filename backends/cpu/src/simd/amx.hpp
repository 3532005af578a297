// Products of bfloat16 and of bytes in tile registers (x86-64, AMX), and what attention does between two of them. A
// tile has 16 rows of 64 bytes; sums are float32 and int32. Called only where may_use_tiles() is true.
#pragma once
#include "isa.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::amx {
inline constexpr int64_t side = 16;  // of a tile of sums
template <class T>
inline constexpr int64_t depth = 64 / sizeof(T);  // factors of a row of a tile
template <class T>
inline constexpr int64_t tile = side * depth<T>;  // and of all
// Whether the level has these functions. For Windows GCC's header computes addresses in 32 bits.
#if defined(__AVX512F__) && !defined(_WIN32)
#define DOVETAIL_CPU_TILES
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

// The tile registers of this thread; oneDNN configures and releases them too.
void configure();
void release();
class Registers {
 public:
  DOVETAIL_CPU_INLINE Registers() { configure(); }
  DOVETAIL_CPU_INLINE ~Registers() { release(); }
  Registers(const Registers&) = delete;
};

// The right operand b[k, n] of a product, as tiles: the p-th one of columns [16 j, 16 j + 16) begins at
// data + j * column + p * step. The two or four factors of a column that fill 4 bytes are next to each other.
template <class T>
struct Tiles {
  const T* data;
  int64_t column, step;
};
// c[m, n] = a[m, k] b[k, n], or += where `add`; m and n in multiples of 16, k of a tile's depth.
void multiply(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t a_row, const Tiles<bf16>& b, float* c,
              int64_t c_row, bool add);
struct Signs {
  bool a, b;  // whether the bytes of a and b are signed
};
void multiply(int64_t m, int64_t n, int64_t k, const uint8_t* a, int64_t a_row, const Tiles<uint8_t>& b,
              Signs signs, int32_t* c, int64_t c_row, bool add);

// The tile of b whose element (p, j) is in[p * row + j * column], for p < k <= depth and j < n <= 16. The rest is
// zero.
template <class T>
void pack(int64_t k, int64_t n, const T* in, int64_t row, int64_t column, T* out);

// Turns the scores of one row into weights, as attention::weigh does, of which the last [n, padded) are 0.
float weigh(float* s, bf16* weights, int64_t n, int64_t padded, float scale, const float* mask, bool hides,
            float& top, float& sum);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::amx
