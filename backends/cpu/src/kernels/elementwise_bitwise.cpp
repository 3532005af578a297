// bitwise_and bitwise_or bitwise_xor bitwise_invert, shifts.
#include <type_traits>

#include "dovetail/functors.hpp"
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace dvt::functors;

struct Invert {
  template <class T>
  T operator()(T x) const {
    return T(~x);
  }
};
struct Not {
  uint8_t operator()(uint8_t x) const { return x ^ 1; }
};

// Counts outside [0, width) shift everything out: the result is 0, or -1 for a negative number shifted right.
// Negative counts are among them. In the width of the operands: compilers make vectors of it.
template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr unsigned width = 8 * sizeof(T);
struct LeftShift {
  template <class T>
  T operator()(T a, T b) const {
    const Unsigned<T> count = Unsigned<T>(b);
    return count < width<T> ? T(Unsigned<T>(a) << (count & (width<T> - 1))) : T(0);
  }
};
struct RightShift {
  template <class T>
  T operator()(T a, T b) const {
    const Unsigned<T> count = Unsigned<T>(b);
    if constexpr (std::is_signed_v<T>) return T(a >> (count < width<T> ? count : width<T> - 1));
    else return count < width<T> ? T(a >> (count & (width<T> - 1))) : T(0);
  }
};

template <class Op>
void add_bitwise(Table& t, const char* op) {
  add_elementwise(t, op, kernel<binary<Op, uint8_t, uint8_t>>, dvt::boolean, dvt::boolean);
  add_binary_bits<Op>(t, op);
}
template <class T>
void add_invert(Table& t) {
  for (DLDataType type : {dvt::dtype_of<T>(), dvt::dtype_of<std::make_signed_t<T>>()})
    add_elementwise(t, "dvt.bitwise_invert", kernel<unary<Invert, T, T>>, type, type);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add_bitwise<BitwiseAnd>(t, "dvt.bitwise_and");
  add_bitwise<BitwiseOr>(t, "dvt.bitwise_or");
  add_bitwise<BitwiseXor>(t, "dvt.bitwise_xor");
  add_elementwise(t, "dvt.bitwise_invert", kernel<unary<Not, uint8_t, uint8_t>>, dvt::boolean, dvt::boolean);
  add_invert<uint8_t>(t);
  add_invert<uint16_t>(t);
  add_invert<uint32_t>(t);
  add_invert<uint64_t>(t);
  add_binary_bits<LeftShift>(t, "dvt.bitwise_left_shift");
  add_binary<RightShift, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      t, "dvt.bitwise_right_shift");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
