// The functions that the texts of groups call (dovetail/codegen_functions.hpp): by the functors that the kernels of
// single ops apply, so a group's results have the same bits. GPU_GROUP_FUNCTION begins each.
#pragma once
#include "dovetail/functors.hpp"

namespace fn = dvt::functors;

#define UNARY(name, suffix, T, F) \
  GPU_GROUP_FUNCTION T dvt_##name##_##suffix(T x) { return F()(x); }
#define BINARY(name, suffix, T, F) \
  GPU_GROUP_FUNCTION T dvt_##name##_##suffix(T x, T y) { return F()(x, y); }
#define TEST(name, suffix, T, F) \
  GPU_GROUP_FUNCTION unsigned char dvt_##name##_##suffix(T x) { return F()(x); }

#define NUMBERS(suffix, T)                         \
  UNARY(sign, suffix, T, fn::Sign)                 \
  BINARY(pow, suffix, T, fn::Pow)                  \
  BINARY(floor_divide, suffix, T, fn::FloorDivide) \
  BINARY(remainder, suffix, T, fn::Remainder)
#define FLOATS(suffix, T)                                                  \
  NUMBERS(suffix, T)                                                       \
  UNARY(exp, suffix, T, fn::Exp)                                           \
  UNARY(expm1, suffix, T, fn::Expm1)                                       \
  UNARY(log, suffix, T, fn::Log)                                           \
  UNARY(log1p, suffix, T, fn::Log1p)                                       \
  UNARY(exp2, suffix, T, fn::Exp2)                                         \
  UNARY(log2, suffix, T, fn::Log2)                                         \
  UNARY(log10, suffix, T, fn::Log10)                                       \
  UNARY(sqrt, suffix, T, fn::Sqrt)                                         \
  UNARY(rsqrt, suffix, T, fn::Rsqrt)                                       \
  UNARY(erf, suffix, T, fn::Erf)                                           \
  UNARY(erfc, suffix, T, fn::Erfc)                                         \
  UNARY(sin, suffix, T, fn::Sin)                                           \
  UNARY(cos, suffix, T, fn::Cos)                                           \
  UNARY(tan, suffix, T, fn::Tan)                                           \
  UNARY(asin, suffix, T, fn::Asin)                                         \
  UNARY(acos, suffix, T, fn::Acos)                                         \
  UNARY(atan, suffix, T, fn::Atan)                                         \
  UNARY(sinh, suffix, T, fn::Sinh)                                         \
  UNARY(cosh, suffix, T, fn::Cosh)                                         \
  UNARY(tanh, suffix, T, fn::Tanh)                                         \
  UNARY(asinh, suffix, T, fn::Asinh)                                       \
  UNARY(acosh, suffix, T, fn::Acosh)                                       \
  UNARY(atanh, suffix, T, fn::Atanh)                                       \
  UNARY(floor, suffix, T, fn::Floor)                                       \
  UNARY(ceil, suffix, T, fn::Ceil)                                         \
  UNARY(trunc, suffix, T, fn::Trunc)                                       \
  UNARY(round, suffix, T, fn::Round)                                       \
  GPU_GROUP_FUNCTION T dvt_abs_##suffix(T x) { return dvt::math::abs(x); } \
  UNARY(sigmoid, suffix, T, fn::Sigmoid)                                   \
  UNARY(silu, suffix, T, fn::Silu)                                         \
  UNARY(mish, suffix, T, fn::Mish)                                         \
  UNARY(selu, suffix, T, fn::Selu)                                         \
  UNARY(logsigmoid, suffix, T, fn::Logsigmoid)                             \
  UNARY(hardsigmoid, suffix, T, fn::Hardsigmoid)                           \
  UNARY(hardswish, suffix, T, fn::Hardswish)                               \
  UNARY(gelu, suffix, T, fn::Gelu)                                         \
  UNARY(gelu_tanh, suffix, T, fn::GeluTanh)                                \
  BINARY(elu, suffix, T, fn::Elu)                                          \
  BINARY(softplus, suffix, T, fn::Softplus)                                \
  BINARY(hypot, suffix, T, fn::Hypot)                                      \
  BINARY(logaddexp, suffix, T, fn::Logaddexp)                              \
  BINARY(atan2, suffix, T, fn::Atan2)                                      \
  BINARY(copysign, suffix, T, fn::Copysign)                                \
  TEST(isinf, suffix, T, fn::IsInf)                                        \
  TEST(isfinite, suffix, T, fn::IsFinite)
#define INTEGERS(suffix, T)                            \
  NUMBERS(suffix, T)                                   \
  BINARY(quotient, suffix, T, fn::Quotient)            \
  BINARY(bitwise_left_shift, suffix, T, fn::ShiftLeft) \
  BINARY(bitwise_right_shift, suffix, T, fn::ShiftRight)
#define SIGNED(suffix, T) UNARY(abs, suffix, T, fn::Abs)

// Between types: the results of conversions to narrow floats are widened again.
#define CONVERT(from, From, to, To, Result) \
  GPU_GROUP_FUNCTION Result dvt_convert_##from##_##to(From x) { return Result(dvt::convert<To>(x)); }
#define TO_NARROW(suffix, T)                              \
  CONVERT(suffix, T, f16, dvt::half, float)               \
  CONVERT(suffix, T, bf16, dvt::bfloat16, float)          \
  CONVERT(suffix, T, f8e4m3fn, dvt::float8_e4m3fn, float) \
  CONVERT(suffix, T, f8e5m2, dvt::float8_e5m2, float)
#define OF_INTEGER(suffix, T)        \
  CONVERT(f32, float, suffix, T, T)  \
  CONVERT(f64, double, suffix, T, T) \
  TO_NARROW(suffix, T)
#define NARROW(suffix, T)                                                                                      \
  GPU_GROUP_FUNCTION float dvt_load_##suffix(decltype(T::bits) bits) { return float(dvt::bit_cast<T>(bits)); } \
  GPU_GROUP_FUNCTION decltype(T::bits) dvt_store_##suffix(float x) { return dvt::convert<T>(x).bits; }

FLOATS(f32, float)
FLOATS(f64, double)
DVT_INTEGERS(INTEGERS)
DVT_SIGNED(SIGNED)
NARROW(f16, dvt::half)
NARROW(bf16, dvt::bfloat16)
DVT_FLOATS8(NARROW)
DVT_INTEGERS(OF_INTEGER)
TO_NARROW(f64, double)
