// Products of matrices of bytes in int32, on the calling thread: exact, with zero points and any strides. Sums
// wrap.
#pragma once
#include <cstdint>

#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::integer_gemm {
// A matrix of int8 or uint8, less its zero points: `zeros` of them, which repeat over the rows of a, the columns of
// b.
struct Operand {
  const void* data;
  int64_t row, column;  // strides
  bool is_signed;
  const void* zero = nullptr;  // of the same type; nullptr: 0
  int64_t zeros = 1;
  int64_t first = 0;  // the row or column in the caller's matrix

  int32_t zero_point(int64_t i) const {
    if (!zero) return 0;
    const int64_t at = (first + i) % zeros;
    return is_signed ? int32_t(static_cast<const int8_t*>(zero)[at]) : static_cast<const uint8_t*>(zero)[at];
  }
};

// c[m, n] = (a[m, k] - its zero points) (b[k, n] - its zero points)
struct Product {
  int64_t m, n, k;
  Operand a, b;
  int32_t* c;
  int64_t c_row;  // columns are contiguous
};
// False: out of memory for packed operands. The callers' tiles bound it: about 4 k (m + n) bytes.
bool product(const Product&);
// The same in the tile registers of x86-64 (integer_tiles.cpp). Where may_use_tiles() is true.
bool product_in_tiles(const Product&);

// The zero points of a's rows and b's columns as the operands were multiplied, and the sums of those rows and
// columns.
struct Corrections {
  const int32_t *a_zero, *b_zero;
  const uint32_t *a_sum, *b_sum;
};
// Makes c of what it has, the product of operands that are not less their zero points.
void correct(const Product&, const Corrections&);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::integer_gemm
