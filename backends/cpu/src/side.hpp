// What pools and convolutions have in common.
#pragma once
#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// One spatial axis over which a window moves; a missing one has size 1. in, stride: of x, step: of the window.
struct Side {
  int64_t in = 1, out = 1, stride = 1, kernel = 1, step = 1, padding = 0, dilation = 1;
  static constexpr int64_t known = 16;
  int64_t first[known] = {}, last[known] = {1};  // outputs() of the first positions: divisions are slow

  int64_t place(int64_t o, int64_t k) const { return o * step - padding + k * dilation; }
  // How many positions of an output's kernel are within x.
  int64_t within(int64_t o) const {
    int64_t n = 0;
    for (int64_t k = 0; k < kernel; ++k) n += place(o, k) >= 0 && place(o, k) < in;
    return n;
  }
  void prepare() {
    for (int64_t k = 0; k < least(kernel, known); ++k) compute(k, first[k], last[k]);
  }
  // Outputs whose window meets x at position k of the kernel: [from, to).
  DOVETAIL_CPU_INLINE void outputs(int64_t k, int64_t& from, int64_t& to) const {
    if (k < known) from = first[k], to = last[k];
    else compute(k, from, to);
  }

 private:
  void compute(int64_t k, int64_t& from, int64_t& to) const {
    const int64_t shift = padding - k * dilation;  // in = out * step - shift
    from = shift > 0 ? divide_up(shift, step) : 0;
    to = least(out, in + shift > 0 ? divide_up(in + shift, step) : 0);
    if (to < from) to = from;
  }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
