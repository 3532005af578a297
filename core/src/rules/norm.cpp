// Rules of normalisations: layer_norm (and rms_norm) over the last axes, batch_norm over axis 1.
#include <algorithm>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
static double epsilon(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f64:
    case DType::c128: return 0x1p-52;
    default: return 0x1p-23;
  }
}

static void resolve_eps(Inference& inv) {
  const int a = attr(inv, "eps");
  if (!inv.attrs.given(a)) set_f64(inv, a, epsilon(inv.compute[0]));
  else if (inv.attrs.at[a].kind == DVT_A_I64) set_f64(inv, a, double(inv.attrs.i64(a)));
}

void shape_layer_norm(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const std::span<const int64_t> last = ints(inv, attr(inv, "normalized_shape"));
  const int n = int(last.size());
  if (n == 0 || n > x.rank() || !std::ranges::equal(x.shape().last(n), last))
    inv.fail("normalized_shape " + to_string(last) + ": expected the last axes of " + described(inv, 0));
  for (int i = 1; i < inv.n_in; ++i)
    if (inv.has(i)) expect_shape(inv, i, last, "that of normalized_shape");
  resolve_eps(inv);
  inv.work = inv.output(0, x.shape()).numel;
}

void shape_batch_norm(Inference& inv) {
  const TensorType& x = inv.operand(0);
  expect_rank(inv, 0, 2);
  for (int i = 1; i < inv.n_in; ++i)
    if (inv.has(i)) expect_shape(inv, i, x.shape().subspan(1, 1), "one value for each channel, x's axis 1");
  resolve_eps(inv);
  inv.work = inv.output(0, x.shape()).numel;
}
}  // namespace dovetail::rules
