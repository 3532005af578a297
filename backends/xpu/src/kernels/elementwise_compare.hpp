// Comparisons: false where either is NaN.
#include "kernels/common/elementwise.hpp"

namespace {
struct Equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
}  // namespace

#define COMPARISONS(suffix, T)                  \
  XPU_BINARY(equal_##suffix, Equal, bool, T, T) \
  XPU_BINARY(less_##suffix, Less, bool, T, T)
XPU_ALL(COMPARISONS)
