// Conversions between all types. A kernel's name is astype_<from>_<to>. Signed integers are written as unsigned
// ones, and read as unsigned ones by conversions that drop their upper bits.
#include "kernels/common/elementwise.hpp"

#define TO(from, From, to, To)                         \
  using Convert_##from##_##to = fn::Convert<To, From>; \
  GPU_UNARY(astype_##from##_##to, Convert_##from##_##to, To, From)
#define TO_NUMBERS(from, From)        \
  TO(from, From, u16, uint16_t)       \
  TO(from, From, u32, uint32_t)       \
  TO(from, From, u64, uint64_t)       \
  TO(from, From, f16, dvt::half)      \
  TO(from, From, bf16, dvt::bfloat16) \
  TO(from, From, f32, float)          \
  TO(from, From, f64, double)
#define TO_ALL(from, From)    \
  TO(from, From, bool, bool)  \
  TO(from, From, u8, uint8_t) \
  TO_NUMBERS(from, From)
DVT_SIGNED(TO_NUMBERS)
DVT_UNSIGNED(TO_ALL)
DVT_FLOATS(TO_ALL)
// The core converts 8-bit floats to all other types by way of float32.
#define FLOAT8(f8, F8)            \
  TO(f8, F8, f16, dvt::half)      \
  TO(f8, F8, bf16, dvt::bfloat16) \
  TO(f8, F8, f32, float)          \
  TO(f16, dvt::half, f8, F8)      \
  TO(bf16, dvt::bfloat16, f8, F8) \
  TO(f32, float, f8, F8)          \
  TO(f64, double, f8, F8)
DVT_FLOATS8(FLOAT8)
