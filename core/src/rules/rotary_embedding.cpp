// The rule of rotary_embedding: x (..., size), and the cosine and sine of an angle for each pair of its elements.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
void shape_rotary_embedding(Inference& inv) {
  enum { x, cos, sin };
  expect_rank(inv, x, 1);
  const TensorType &values = inv.operand(x), &table = inv.operand(cos);
  const int last = values.rank() - 1;
  expect_rank(inv, cos, 1, values.rank());
  const int64_t pairs = table.size(table.rank() - 1), most = values.size(last) / 2;
  if (pairs < 1 || pairs > most)
    inv.fail(described(inv, cos) + " has " + std::to_string(pairs) + " angles: expected 1 to " +
             std::to_string(most) + ", one for each pair of elements of " + described(inv, x) +
             (pairs == 2 * most ? "; of tables with each angle twice take half of the last axis" : ""));
  Shape angles(values.shape());
  angles.at[last] = pairs;
  if (!broadcasts_to(table.shape(), angles))
    inv.fail(described(inv, cos) + " does not broadcast to " + to_string(std::span<const int64_t>(angles)) +
             ", the pairs of " + described(inv, x) +
             ": expected (..., sequence, pairs); of tables for more positions take the first of that axis, and "
             "expand_dims gives tables of a batch an axis for heads");
  expect_shape(inv, sin, table.shape(), "that of cos");
  inv.work = inv.output(0, values.shape()).numel;
}
}  // namespace dovetail::rules
