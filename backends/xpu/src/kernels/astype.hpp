// Conversions between all types. A kernel's name is astype_<from>_<to>.
#include "kernels/common/elementwise.hpp"

namespace {
template <class To, class From>
struct Convert {
  To operator()(xpu::Compute<From> x) const { return dvt::convert<To>(x); }
};
}  // namespace

#define TO(from, From, to, To)                     \
  using Convert_##from##_##to = Convert<To, From>; \
  XPU_UNARY(astype_##from##_##to, Convert_##from##_##to, To, From)
#define TO_ALL(from, From)        \
  TO(from, From, bool, bool)      \
  TO(from, From, i8, int8_t)      \
  TO(from, From, i16, int16_t)    \
  TO(from, From, i32, int32_t)    \
  TO(from, From, i64, int64_t)    \
  TO(from, From, u8, uint8_t)     \
  TO(from, From, u16, uint16_t)   \
  TO(from, From, u32, uint32_t)   \
  TO(from, From, u64, uint64_t)   \
  TO(from, From, f16, xpu::half)  \
  TO(from, From, bf16, xpu::bf16) \
  TO(from, From, f32, float)      \
  TO(from, From, f64, double)
XPU_ALL(TO_ALL)
// The core gets to all other types by way of float32.
#define FLOAT8(f8, F8)        \
  TO(f8, F8, f16, xpu::half)  \
  TO(f8, F8, bf16, xpu::bf16) \
  TO(f8, F8, f32, float)      \
  TO(f16, xpu::half, f8, F8)  \
  TO(bf16, xpu::bf16, f8, F8) \
  TO(f32, float, f8, F8)      \
  TO(f64, double, f8, F8)
XPU_FLOATS8(FLOAT8)
