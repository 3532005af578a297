// oneDNN, opened by the first op that needs it. Every call runs on the calling thread: callers split work
// over the host's pool. Only generated code is used, never oneDNN's reference code. Descriptions are the keys
// of caches, so they hold no pointers.
#pragma once
#include <cstdint>

#include "dovetail/abi.h"

namespace dovetail::cpu::onednn {
// Whether this machine has bfloat16 products that are faster than converting to float32.
bool fast_bfloat16();
// Whether it has products of float16, added up in float32, that are faster than converting all operands before.
bool fast_float16();

// Whether it has exact products of bytes. On aarch64 only those of packed weights.
bool fast_int8();

// c[m, n] = a[m, k] b[k, n] + bias[n]; of bfloat16 and float16 c may be float32. For bytes (`in` is u8) c is int32,
// correct modulo 2^8 for signed and unsigned operands.
struct Product {
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row;  // strides in elements; c's columns are contiguous
  DLDataType in, out;                               // a, b; c. bias is float32
  uint64_t bias;                                    // is there one?
  uint64_t add = false;                             // to what c holds
};
// Returns false, having written nothing, if oneDNN is absent or does not serve the case.
bool multiply(const Product&, const void* a, const void* b, const float* bias, void* c);

// A matrix of weights, b[k, n].
struct Weights {
  int64_t k, n;
  int64_t row, column;  // strides
  DLDataType type;
  uint32_t zero = 0;  // no padding: it is the key of a cache
};
// b packed: in panels of `columns` columns (the last may have fewer), each in oneDNN's layout. Panels are
// packed and multiplied one by one, so tiles of a product may be cut between them. They do not depend on m.
struct Panels {
  int64_t columns, count;
  uint64_t bytes;         // from one panel to the next
  uint64_t size, layout;  // of all: dvt_kernel.pack_size
};
// False: oneDNN has no layout of its own for b.
bool panels(const Weights&, Panels&);
bool pack_panel(const Weights& of_one, const void* b, void* to);
// multiply() for one panel, whose width is n; b_row and b_column are ignored. If it returns false, c's content is
// undefined.
bool multiply_panel(const Product&, const void* a, const void* panel, const float* bias, void* c);

// A chunk of a convolution: some rows of y, of one image and group. Two axes each; a missing one has size 1.
struct Convolution {
  int64_t channels, outputs;
  int64_t in[2], out[2];
  int64_t kernel[2], step[2], dilation[2];
  int64_t before[2], after[2];  // padding
  int64_t x_channel, x[2];      // strides in elements
  int64_t y_output, y[2];
  int64_t like[2];  // the `out` of a typical chunk, which determines the layout of the weights
  DLDataType type;  // of all four operands
  uint32_t bias;    // is there one?
};
// weight[outputs, channels, kernel...], without gaps, packed in panels of outputs (Panels.columns).
bool panels(const Convolution&, Panels&);
bool pack_panel(const Convolution& of_one, const void* weight, void* to);
// Panels from `panels` on. False: the output is undefined.
bool convolve(const Convolution&, const Panels&, const void* x, const void* panels, const void* bias, void* y);
}  // namespace dovetail::cpu::onednn
