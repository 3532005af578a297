// equal not_equal less less_equal greater greater_equal, logical_*, isnan isinf isfinite signbit.
#include "dovetail/functors.hpp"
#include "simd/complex.hpp"
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace dvt::functors;

struct Greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};

// Bools are bytes of 0 and 1.
struct And {
  uint8_t operator()(uint8_t a, uint8_t b) const { return a & b; }
};
struct Or {
  uint8_t operator()(uint8_t a, uint8_t b) const { return a | b; }
};
struct Xor {
  uint8_t operator()(uint8_t a, uint8_t b) const { return a ^ b; }
};
struct Not {
  uint8_t operator()(uint8_t x) const { return x ^ 1; }
};

struct IsNan {
  template <class T>
  bool operator()(T x) const {
    return x != x;
  }
};
struct SignBit {
  bool operator()(float x) const { return bit_cast<uint32_t>(x) >> 31; }
  bool operator()(double x) const { return bit_cast<uint64_t>(x) >> 63; }
};

template <class Op, class... T>
void add_compare(Table& t, const char* op) {
  add_elementwise(t, op, kernel<binary<Op, bool, uint8_t>>, dvt::boolean, dvt::boolean);
  (add_elementwise(t, op, kernel<binary<Op, bool, T>>, dvt::dtype_of<T>(), dvt::boolean), ...);
  add_elementwise(t, op, kernel<binary_half<Op, bool, Half::f16>>, dvt::f16, dvt::boolean);
  add_elementwise(t, op, kernel<binary_half<Op, bool, Half::bf16>>, dvt::bf16, dvt::boolean);
}
template <class Op>
void add_order(Table& t, const char* op) {
  add_compare<Op, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>(t, op);
}
template <class Op>
void add_equality(Table& t, const char* op) {
  const auto both = [&](ElementwiseKernel kernel, DLDataType i, DLDataType u) {
    add_elementwise(t, op, kernel, i, dvt::boolean);
    add_elementwise(t, op, kernel, u, dvt::boolean);
  };
  add_compare<Op, float, double>(t, op);
  both(kernel<binary<Op, bool, uint8_t>>, dvt::i8, dvt::u8);
  both(kernel<binary<Op, bool, uint16_t>>, dvt::i16, dvt::u16);
  both(kernel<binary<Op, bool, uint32_t>>, dvt::i32, dvt::u32);
  both(kernel<binary<Op, bool, uint64_t>>, dvt::i64, dvt::u64);
  add_elementwise(t, op, kernel<binary<Op, bool, Complex<float>>>, dvt::c64, dvt::boolean);
  add_elementwise(t, op, kernel<binary<Op, bool, Complex<double>>>, dvt::c128, dvt::boolean);
}
template <class Op>
void add_logical(Table& t, const char* op) {
  add_elementwise(t, op, kernel<binary<Op, uint8_t, uint8_t>>, dvt::boolean, dvt::boolean);
}
template <class Op>
void add_predicate(Table& t, const char* op) {
  add_elementwise(t, op, kernel<unary<Op, bool, float>>, dvt::f32, dvt::boolean);
  add_elementwise(t, op, kernel<unary<Op, bool, double>>, dvt::f64, dvt::boolean);
  add_elementwise(t, op, kernel<unary_half<Op, bool, Half::f16>>, dvt::f16, dvt::boolean);
  add_elementwise(t, op, kernel<unary_half<Op, bool, Half::bf16>>, dvt::bf16, dvt::boolean);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add_equality<Equal>(t, "dvt.equal");
  add_equality<NotEqual>(t, "dvt.not_equal");
  add_order<Less>(t, "dvt.less");
  add_order<LessEqual>(t, "dvt.less_equal");
  add_order<Greater>(t, "dvt.greater");
  add_order<GreaterEqual>(t, "dvt.greater_equal");
  add_logical<And>(t, "dvt.logical_and");
  add_logical<Or>(t, "dvt.logical_or");
  add_logical<Xor>(t, "dvt.logical_xor");
  add_elementwise(t, "dvt.logical_not", kernel<unary<Not, uint8_t, uint8_t>>, dvt::boolean, dvt::boolean);
  add_predicate<IsNan>(t, "dvt.isnan");
  add_predicate<IsInf>(t, "dvt.isinf");
  add_predicate<IsFinite>(t, "dvt.isfinite");
  add_predicate<SignBit>(t, "dvt.signbit");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
