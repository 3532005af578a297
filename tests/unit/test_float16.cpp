// dvt::software_float16, which replaces a missing float16, against the compiler's own.
#include "check.hpp"

#include <cmath>

#include "dovetail/float16.hpp"

namespace {
dvt::software_float16 of_bits(uint32_t bits) {
  dvt::software_float16 x;
  x.bits = uint16_t(bits);
  return x;
}

#ifdef __FLT16_MAX__  // dvt::float16 is a type of the compiler
uint16_t expected(double x) {
  const auto rounded = dvt::float16(x);
  uint16_t bits;
  std::memcpy(&bits, &rounded, 2);
  return bits;
}

TEST(every_value_comes_back) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const dvt::software_float16 x = of_bits(bits);
    dvt::float16 theirs;
    std::memcpy(&theirs, &x, 2);
    const float value = x;
    if (value != value) CHECK(float(theirs) != float(theirs) && float(dvt::software_float16(value)) != value);
    else CHECK(value == float(theirs) && dvt::software_float16(value).bits == bits);
  }
}

TEST(what_lies_between_rounds_to_nearest_even) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const double next = bits == 0x7BFF ? 65536 : double(float(of_bits(bits + 1)));
    const double middle = (double(float(of_bits(bits))) + next) / 2;
    for (const double x : {std::nextafter(middle, 0), middle, std::nextafter(middle, 1e9)})
      for (const double signed_x : {x, -x}) CHECK_EQ(dvt::software_float16(signed_x).bits, expected(signed_x));
  }
  for (const double x : {1e300, -1e300, 5e-324, 1e-9, 0.0, -0.0})
    CHECK_EQ(dvt::software_float16(x).bits, expected(x));
}
#endif

TEST(it_computes_as_float) {
  CHECK_EQ(dvt::software_float16(3) / 2, 1.5f);
  CHECK_EQ(dvt::software_float16(int64_t{-7}).bits, uint16_t{0xC700});
}
}  // namespace

CHECK_MAIN
