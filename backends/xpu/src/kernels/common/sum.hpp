// Sums of floats.
#pragma once

namespace xpu {
// A sum that carries what rounding takes off it; infinities leave NaN behind there. Begins with -0, which changes
// nothing, not even a -0.
template <class T>
struct Sum {
  T value, lost;

  static Sum nothing() { return {-T(0), T(0)}; }
  void add(T x) {
    const T sum = value + x, part = sum - value;
    lost += (value - (sum - part)) + (x - part);
    value = sum;
  }
  static Sum join(Sum a, const Sum& b) {
    a.add(b.value);
    a.lost += b.lost;
    return a;
  }
  T total() const { return lost == lost && lost != 0 ? value + lost : value; }
};
}  // namespace xpu
