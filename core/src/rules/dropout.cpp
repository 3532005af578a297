// The rule of dropout.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
void shape_dropout(Inference& inv) {
  expect_key(inv, 1);
  const int a = attr(inv, "p");
  if (inv.attrs.at[a].kind == DVT_A_I64) set_f64(inv, a, double(inv.attrs.i64(a)));
  if (const double p = inv.attrs.f64(a); !(p >= 0 && p <= 1))
    inv.fail("p: got " + to_string(p) + ", expected a probability from 0 to 1");
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}
}  // namespace dovetail::rules
