// The rules of quantize and dequantize: one scale and zero point for all of x, or for each index of an axis.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
namespace {
enum { x, scale, zero_point };

bool is_one_value(const TensorType& t) { return t.numel == 1 && t.rank() <= 1; }
}  // namespace

void shape_quantize(Inference& inv) {
  const TensorType& values = inv.operand(x);
  if (const int a = axis_attr(inv); inv.attrs.given(a)) {
    const int axis = single_axis(inv);
    const int64_t n = values.size(axis);
    expect_shape(inv, scale, {&n, 1}, "one value for each index of x's axis " + std::to_string(axis));
  } else if (!is_one_value(inv.operand(scale))) {
    inv.fail(described(inv, scale) +
             ": expected one value for all of x; axis= names the axis of x that has a value for each index");
  }
  if (inv.has(zero_point) && !is_one_value(inv.operand(zero_point)))
    expect_shape(inv, zero_point, inv.operand(scale).shape(), "that of scale, or one value");
  inv.work = inv.output(0, values.shape()).numel;
}

void shape_dequantize(Inference& inv) {
  if (const DType t = inv.operand(x).dtype; !is_integer(t) || info(t).bits() > 8)
    inv.fail(ErrorKind::type,
             operand_name(inv, x) + " is " + info(t).name +
                 ": expected int8, uint8, int4, uint4, int2 or uint2, as quantize gives them; astype "
                 "and multiply others");
  shape_quantize(inv);
}
}  // namespace dovetail::rules
