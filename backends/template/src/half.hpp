// fp16, bf16 and fp8. The device computes with none of them: decompositions run in float32, and astype converts.
#pragma once
#include "dovetail/floats.hpp"
#include "dovetail/types.hpp"
#include "kernels.hpp"

using dvt::convert;
using f16 = dvt::half;
using bf16 = dvt::bfloat16;
using f8e4m3fn = dvt::float8_e4m3fn;
using f8e5m2 = dvt::float8_e5m2;

template <class T>
constexpr DLDataType type_of() {
  if constexpr (std::is_same_v<T, f16>) return dvt::f16;
  else if constexpr (std::is_same_v<T, bf16>) return dvt::bf16;
  else if constexpr (std::is_same_v<T, f8e4m3fn>) return dvt::f8e4m3fn;
  else if constexpr (std::is_same_v<T, f8e5m2>) return dvt::f8e5m2;
  else return dvt::dtype_of<T>();
}

const auto all_types = Types<bool, f8e4m3fn, f8e5m2, f16, bf16>() + Floats() + Signed() + Unsigned();
