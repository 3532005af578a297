// Comparisons: false where either is NaN, but for not_equal; and which kind of number a float is.
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
struct NotEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct GreaterEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct IsInf {
  template <class T>
  bool operator()(T x) const {
    return sycl::isinf(x);
  }
};
struct IsFinite {
  template <class T>
  bool operator()(T x) const {
    return sycl::isfinite(x);
  }
};
}  // namespace

#define COMPARISONS(suffix, T)                           \
  XPU_BINARY(equal_##suffix, Equal, bool, T, T)          \
  XPU_BINARY(not_equal_##suffix, NotEqual, bool, T, T)   \
  XPU_BINARY(less_##suffix, Less, bool, T, T)            \
  XPU_BINARY(less_equal_##suffix, LessEqual, bool, T, T) \
  XPU_BINARY(greater_equal_##suffix, GreaterEqual, bool, T, T)
XPU_ALL(COMPARISONS)

#define KINDS(suffix, T)                    \
  XPU_UNARY(isinf_##suffix, IsInf, bool, T) \
  XPU_UNARY(isfinite_##suffix, IsFinite, bool, T)
XPU_FLOATS(KINDS)
