// Element types, and lists of them for macros.
#pragma once
#include "dovetail/floats.hpp"
#include "kernels/common/kernel.hpp"

namespace xpu {
using dvt::Compute;
using dvt::half;
using dvt::is_narrow;
using bf16 = dvt::bfloat16;
using f8e4m3fn = dvt::float8_e4m3fn;
using f8e5m2 = dvt::float8_e5m2;

struct bits128 {
  uint64_t half[2];
};
}  // namespace xpu

// X(suffix, type) for each type of a list; the suffix ends a kernel's name.
#define GPU_SIGNED(X) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)
#define GPU_UNSIGNED(X) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define GPU_INTEGERS(X) GPU_SIGNED(X) GPU_UNSIGNED(X)
#define GPU_FLOATS(X) X(f16, xpu::half) X(bf16, xpu::bf16) X(f32, float) X(f64, double)
#define GPU_NUMBERS(X) GPU_INTEGERS(X) GPU_FLOATS(X)
#define GPU_ALL(X) X(bool, bool) GPU_NUMBERS(X)
#define GPU_FLOATS8(X) X(f8e4m3fn, xpu::f8e4m3fn) X(f8e5m2, xpu::f8e5m2)
// For kernels that move elements and do not look at them.
#define GPU_SIZES(X) X(x8, uint8_t) X(x16, uint16_t) X(x32, uint32_t) X(x64, uint64_t) X(x128, xpu::bits128)
