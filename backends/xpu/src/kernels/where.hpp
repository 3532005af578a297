// One of two elements, by a condition; of any type.
#include "kernels/common/elementwise.hpp"

namespace {
struct Choose {
  template <class T>
  T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};
}  // namespace

#define WHERE(suffix, T) XPU_TERNARY(where_##suffix, Choose, T, bool, T, T)
XPU_SIZES(WHERE)
