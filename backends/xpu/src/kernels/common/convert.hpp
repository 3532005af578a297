// A number of any type as one of any other, rounded once. Floats lose their fraction on the way to integers;
// integers wrap.
#pragma once
#include "kernels/common/types.hpp"

namespace xpu {
// To float32, inexact ones to the neighbour with an odd last bit: what is rounded to 16 bits then is right.
inline float to_odd_float(double x) {
  const auto f = float(x);
  uint32_t b = sycl::bit_cast<uint32_t>(f);
  if (!sycl::isfinite(f) || double(f) == x) return f;
  b -= sycl::fabs(double(f)) > sycl::fabs(x);
  return sycl::bit_cast<float>(b | 1);
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
float to_odd_float(T x) {
  const bool negative = x < 0;
  uint64_t m = negative ? uint64_t(0) - uint64_t(x) : uint64_t(x);
  const int excess = 40 - int(sycl::clz(m));  // bits beyond the 24 of a float32
  if (excess <= 0) return negative ? -float(m) : float(m);
  const uint64_t rest = m & ((uint64_t(1) << excess) - 1);
  const float f = float(m >> excess | (rest != 0)) * sycl::bit_cast<float>(uint32_t(127 + excess) << 23);
  return negative ? -f : f;
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (is_narrow<From>) return convert<To>(float(x));
  else if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (std::is_same_v<From, bool>) return To(x ? 1.0f : 0.0f);
  else if constexpr (is_narrow<To>) {
    if constexpr (std::is_same_v<From, float>) return To(x);
    else return To(to_odd_float(x));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (!(x > From(-9.3e18) && x < From(1.9e19))) return 0;  // any value will do; NaN comes here too
    return x < 0 ? To(int64_t(x)) : To(uint64_t(x));
  } else return To(x);
}
}  // namespace xpu
