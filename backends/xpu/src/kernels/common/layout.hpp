// How the operands of an elementwise kernel lie in memory: structs that host and kernels share.
#pragma once
#include <cstdint>

namespace xpu {
inline constexpr int max_axes = 6;                  // the host splits a call with more
inline constexpr uint32_t max_elements = 1u << 31;  // of one launch; the host splits larger calls

struct Scalar {  // a value of any type, in its first bytes
  uint64_t bits[2];
};

// All operands are row-major like the output, or a single element.
template <int inputs>
struct Dense {
  uint32_t n;
  uint32_t moves;  // bit i: input i has n elements; else one, or none and its value is here
  Scalar value[inputs];
};

// Any strides, in elements; of axis 0 the outermost. The output's come last.
template <int inputs>
struct Strided {
  uint32_t n, axes;
  uint32_t size[max_axes];
  int64_t stride[inputs + 1][max_axes];
  Scalar value[inputs];  // of inputs without memory
};
}  // namespace xpu
