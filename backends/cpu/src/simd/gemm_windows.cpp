// Products with the windows of an image.
#include "simd/gemm_tiles.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Shifted<T>& b,
              T* c, int64_t c_row, bool add, const T* bias) {
  const int64_t rows = block_rows<T>(m);
  multiply_blocks<T>(m, n, k, {a, rows, rows * a_row, a_row, a_column}, b, {c, c_row, add, nullptr, bias},
                     run_length<T>(k));
}

#define DOVETAIL_MULTIPLY(T)                                                                                       \
  template void multiply<T>(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const Shifted<T>&, T*, int64_t, \
                            bool, const T*);
DOVETAIL_MULTIPLY(float)
DOVETAIL_MULTIPLY(double)
DOVETAIL_MULTIPLY(uint32_t)
DOVETAIL_MULTIPLY(uint64_t)
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
