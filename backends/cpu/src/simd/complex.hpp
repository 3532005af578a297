// Complex numbers as they are in memory.
#pragma once

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class T>
struct Complex {
  T re, im;
  bool operator==(const Complex& o) const { return (re == o.re) & (im == o.im); }
  bool operator!=(const Complex& o) const { return !(*this == o); }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
