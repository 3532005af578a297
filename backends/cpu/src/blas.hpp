// OpenBLAS, opened by the first op that needs it. Every call runs on the calling thread: callers split
// products over the host's pool.
#pragma once
#include <cstdint>

namespace dovetail::cpu {
// C[m, n] = A[m, k] B[k, n], real or complex (interleaved). Each operand is row-major (`a_row` apart, adjacent
// columns) or, where transposed, column-major (`a_row` is then the distance of its columns).
struct BlasProduct {
  int64_t m, n, k;
  int64_t a_row, b_row, c_row;
  bool a_transposed, b_transposed;
};
// Is there an OpenBLAS that multiplies rightly on this processor?
bool has_blas();
// Returns false, having written nothing, if there is no OpenBLAS or a size exceeds its integers.
bool blas_multiply(const BlasProduct&, const float* a, const float* b, float* c);
bool blas_multiply(const BlasProduct&, const double* a, const double* b, double* c);
bool blas_multiply_complex(const BlasProduct&, const float* a, const float* b, float* c);
bool blas_multiply_complex(const BlasProduct&, const double* a, const double* b, double* c);
// bfloat16 operands. Also false if OpenBLAS has no kernel with bfloat16 instructions for this processor.
bool blas_multiply_bfloat16(const BlasProduct&, const uint16_t* a, const uint16_t* b, float* c);
}  // namespace dovetail::cpu
