// The rules of cross_entropy and its gradient: logits (N, C, d1, ...) and class indices (N, d1, ...), or (C,) and
// ().
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
// The shape of the loss.
static std::span<const int64_t> losses(Inference& inv) {
  const TensorType &x = inv.operand(0), &target = inv.operand(1);
  expect_rank(inv, 0, 1);
  const int classes = x.rank() == 1 ? 0 : 1;
  Shape expected;
  expected.append(x, 0, classes);
  expected.append(x, classes + 1, x.rank());
  expect_shape(inv, 1, expected, "x's without the classes on axis " + std::to_string(classes));
  const std::string_view reduction = inv.attrs.str(attr(inv, "reduction"));
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    inv.fail("reduction '" + std::string(reduction) + "': expected 'none', 'mean' or 'sum'");
  if (x.size(classes) == 0 && target.numel != 0)
    inv.fail(described(inv, 0) + " has no classes on axis " + std::to_string(classes) + ": expected at least one");
  return reduction == "none" ? target.shape() : std::span<const int64_t>();
}

void shape_cross_entropy(Inference& inv) {
  inv.output(0, losses(inv));
  inv.work = inv.operand(0).numel;
}

void shape_cross_entropy_grad(Inference& inv) {
  expect_shape(inv, 2, losses(inv), "that of the loss");
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}
}  // namespace dovetail::rules
