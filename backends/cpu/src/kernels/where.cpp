// where: x1 or x2 by a mask. By byte size.
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <class T>
void choose(const void* const* in, const int64_t* step, void* out, int64_t n) {
  const uint8_t* condition = static_cast<const uint8_t*>(in[0]);
  const T *a = static_cast<const T*>(in[1]), *b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  if (!step[0]) {
    const bool first = *condition;
    const T* x = first ? a : b;
    const int64_t x_step = first ? step[1] : step[2];
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = x[i * x_step];
  } else if (step[1] && step[2]) {
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
      const T u = a[i], v = b[i];
      y[i] = condition[i] ? u : v;
    }
  } else if (step[1]) {
    const T v = *b;
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
      const T u = a[i];
      y[i] = condition[i] ? u : v;
    }
  } else if (step[2]) {
    const T u = *a;
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
      const T v = b[i];
      y[i] = condition[i] ? u : v;
    }
  } else {
    const T u = *a, v = *b;
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = condition[i] ? u : v;
  }
}
struct Pair {
  uint64_t half[2];
};
template <class T>
inline constexpr Elementwise spec{choose<T>, 3, {1, sizeof(T), sizeof(T)}, sizeof(T), true};

template <class T>
void add(Table& t) {
  constexpr unsigned flags = DVT_O_STRIDED | DVT_O_HOST_SCALAR;
  const DLDataType type = dvt::any(8 * sizeof(T));
  dvt::Row row("dvt.where", run<spec<T>>);
  row.in(dvt::boolean, flags).in(type, flags | DVT_O_ALIAS).in(type, flags | DVT_O_ALIAS).out(type);
  t.add(row.deterministic().kernel());
  t.add_loop({"dvt.where", &spec<T>, nullptr, {dvt::boolean, type, type}, type});
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add<uint8_t>(t);
  add<uint16_t>(t);
  add<uint32_t>(t);
  add<uint64_t>(t);
  add<Pair>(t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
