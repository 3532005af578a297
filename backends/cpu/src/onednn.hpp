// oneDNN, opened at the first op that wants it. Every call runs on the calling thread: split over the host's pool.
#pragma once
#include <cstdint>

#include "dovetail/abi.h"

namespace dovetail::cpu::onednn {
// Has this machine bfloat16 products that beat converting to float32?
bool fast_bfloat16();

// c[m, n] = a[m, k] b[k, n] + bias[n]. All of the description is the key of a cache, so it holds no pointers.
struct Product {
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row;  // strides in elements; c's columns are adjacent
  DLDataType in, out;                               // a, b; c. bias is float32
  uint64_t bias;                                    // is there one?
};
// False where oneDNN is absent or does not serve the case: nothing was written.
bool multiply(const Product&, const void* a, const void* b, const float* bias, void* c);
}  // namespace dovetail::cpu::onednn
