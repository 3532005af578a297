// Products of bfloat16 in tile registers (x86-64, AMX), and what attention does between two of them. A tile has 16
// rows of 32 numbers; sums are float32. Called only where may_use_tiles() is true.
#pragma once
#include "isa.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::amx {
inline constexpr int64_t side = 16, depth = 32, tile = side * depth;  // in sums; in factors; factors of a tile
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

// The right operand b[k, n] of a product, as tiles: that of columns [16 j, 16 j + 16) and rows [32 p, 32 p + 32)
// begins at data + j * column + p * step, and has pairs of rows next to each other.
struct Tiles {
  const bf16* data;
  int64_t column, step;
};
// c[m, n] = a[m, k] b[k, n], or += where `add`; m and n in multiples of 16, k of 32.
void multiply(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t a_row, const Tiles& b, float* c,
              int64_t c_row, bool add);

// The tile of b whose element (p, j) is in[p * row + j * column], for p < k <= 32 and j < n <= 16; the rest is 0.
void pack(int64_t k, int64_t n, const bf16* in, int64_t row, int64_t column, bf16* out);

// Turns the scores of one row into weights, as attention::weigh does, of which the last [n, padded) are 0.
float weigh(float* s, bf16* weights, int64_t n, int64_t padded, float scale, const float* mask, bool hides,
            float& top, float& sum);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::amx
