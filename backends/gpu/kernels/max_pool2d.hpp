// max_pool2d, avg_pool2d: a thread for each result. Padding never wins a maximum; NaN does.
#include "kernels/common/pool.hpp"

namespace {
template <class T>
struct Largest {
  using C = gpu::Compute<T>;
  static DVT_FN C nothing() {
    if constexpr (std::is_floating_point_v<C>) return -__builtin_inff();
    else if constexpr (std::is_unsigned_v<C>) return 0;
    else return C(uint64_t(1) << (8 * sizeof(C) - 1));
  }
  static DVT_FN C join(C a, C b) { return b > a || b != b ? b : a; }
  DVT_FN C operator()(C value, int64_t, int64_t) const { return value; }
};

template <class T>
struct Average {
  using C = gpu::Compute<T>;
  const dvt::Windows& how;
  bool with_padding;

  static DVT_FN C nothing() { return 0; }
  static DVT_FN C join(C a, C b) { return a + b; }
  static DVT_FN C places(const dvt::WindowAxis& axis, int64_t o) {  // of its window that are no padding
    int64_t n = 0;
    for (int64_t tap = 0; tap < axis.size; ++tap) n += axis.holds(axis.place(o, tap));
    return C(n);
  }
  DVT_FN C operator()(C total, int64_t i, int64_t j) const {
    return total / (with_padding ? C(how.h.size * how.w.size) : places(how.h, i) * places(how.w, j));
  }
};
}  // namespace

#define MAX_POOL(suffix, T) \
  GPU_KERNEL(3, max_pool_##suffix)(const T* x, T* out, dvt::Windows how) { gpu::pool(x, out, how, Largest<T>{}); }
DVT_NUMBERS(MAX_POOL)
#define AVG_POOL(suffix, T)                                                                       \
  GPU_KERNEL(3, avg_pool_##suffix)(const T* x, T* out, dvt::Windows how, uint32_t with_padding) { \
    gpu::pool(x, out, how, Average<T>{how, with_padding != 0});                                   \
  }
DVT_FLOATS(AVG_POOL)
