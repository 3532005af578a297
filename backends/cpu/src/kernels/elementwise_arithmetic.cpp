// add subtract multiply divide maximum minimum negative abs square sign reciprocal relu.
#include <type_traits>

#include "dovetail/functors.hpp"
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace dvt::functors;

struct Negative {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return -x;
    else return Subtract()(T(0), x);
  }
};
struct Magnitude {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return dvt::math::abs(x);
    else return Abs()(x);
  }
};
struct Square {
  template <class T>
  T operator()(T x) const {
    return Multiply()(x, x);
  }
};
struct SignOf {  // in the form of which compilers make vectors for doubles too
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return x != x ? x : T(x > 0) - T(x < 0);
    else return T((x > 0) - (x < 0));
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T x) const {
    return T(1) / x;
  }
};

template <class Op>
void add_float_binary(Table& table, const char* op) {
  add_binary<Op, float, double>(table, op);
  add_binary_half<Op>(table, op);
}
template <class Op>
void add_float_unary(Table& table, const char* op) {
  add_unary<Op, float, double>(table, op);
  add_unary_half<Op>(table, op);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add_binary_bits<Add>(t, "dvt.add");
  add_binary_bits<Subtract>(t, "dvt.subtract");
  add_binary_bits<Multiply>(t, "dvt.multiply");
  add_float_binary<Add>(t, "dvt.add");
  add_float_binary<Subtract>(t, "dvt.subtract");
  add_float_binary<Multiply>(t, "dvt.multiply");
  add_float_binary<Divide>(t, "dvt.divide");

  add_elementwise(t, "dvt.maximum", kernel<binary<Maximum, uint8_t, uint8_t>>, dvt::boolean, dvt::boolean);
  add_elementwise(t, "dvt.minimum", kernel<binary<Minimum, uint8_t, uint8_t>>, dvt::boolean, dvt::boolean);
  add_binary<Maximum, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.maximum");
  add_binary<Minimum, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.minimum");
  add_float_binary<Maximum>(t, "dvt.maximum");
  add_float_binary<Minimum>(t, "dvt.minimum");

  add_unary<Negative, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.negative");
  add_unary<Magnitude, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.abs");
  add_unary<Square, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.square");
  add_unary<SignOf, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.sign");
  add_unary<Relu, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, "dvt.relu");
  add_float_unary<Negative>(t, "dvt.negative");
  add_float_unary<Magnitude>(t, "dvt.abs");
  add_float_unary<Square>(t, "dvt.square");
  add_float_unary<SignOf>(t, "dvt.sign");
  add_float_unary<Relu>(t, "dvt.relu");
  add_float_unary<Reciprocal>(t, "dvt.reciprocal");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
