// Rules of factorizations of matrices and of triangular systems.
#include <algorithm>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
static uint64_t expect_square(const Inference& inv) {
  expect_rank(inv, 0, 2);
  const TensorType& x = inv.operand(0);
  const int64_t n = x.size(x.rank() - 1);
  if (x.size(x.rank() - 2) != n)
    inv.fail(described(inv, 0) + ": expected square matrices, as many rows as columns");
  return x.numel * uint64_t(n);
}

void shape_square(Inference& inv) {
  inv.work = expect_square(inv);
  inv.output(0, inv.operand(0).shape());
}

void shape_lu(Inference& inv) {
  inv.work = expect_square(inv);
  const std::span<const int64_t> shape = inv.operand(0).shape();
  inv.output(0, shape);
  inv.output(1, shape.first(shape.size() - 1));
  inv.output(2, shape.first(shape.size() - 2));
}

void shape_solve(Inference& inv) {
  expect_square(inv);
  expect_rank(inv, 1, 2);
  const TensorType &a = inv.operand(0), &b = inv.operand(1);
  const int m = a.rank(), n = b.rank();
  if (a.size(m - 1) != b.size(n - 2))
    inv.fail("shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) + " do not match: expected " +
             operand_name(inv, 1) + " of " + std::to_string(a.size(m - 1)) + " rows");
  Shape shape;
  if (!broadcast_shapes(a.shape().first(m - 2), b.shape().first(n - 2), shape.at, &shape.rank))
    inv.fail("shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) +
             " do not match: expected the axes before the last two to broadcast");
  shape.push(b.size(n - 2));
  shape.push(b.size(n - 1));
  inv.work = inv.output(0, shape).numel * uint64_t(a.size(m - 1));
}

void shape_eigh(Inference& inv) {
  inv.work = expect_square(inv);
  const std::span<const int64_t> shape = inv.operand(0).shape();
  inv.output(0, shape.first(shape.size() - 1));
  inv.output(1, shape);
}

void shape_svd(Inference& inv) {
  expect_rank(inv, 0, 2);
  const TensorType& x = inv.operand(0);
  const int rank = x.rank();
  const int64_t rows = x.size(rank - 2), columns = x.size(rank - 1), values = std::min(rows, columns);
  const bool full = flag(inv, "full_matrices");
  Shape u(x.shape()), v(x.shape()), s(x.shape().first(rank - 1));
  u.at[rank - 1] = full ? rows : values;
  s.at[rank - 2] = values;
  v.at[rank - 2] = full ? columns : values;
  inv.output(0, u);
  inv.output(1, s);
  inv.output(2, v);
  inv.work = x.numel * uint64_t(values);
}

void shape_qr(Inference& inv) {
  expect_rank(inv, 0, 2);
  const std::string_view mode = inv.attrs.str(attr(inv, "mode"));
  if (mode != "reduced" && mode != "complete")
    inv.fail("mode: expected 'reduced' or 'complete', got '" + std::string(mode) + "'");
  const TensorType& x = inv.operand(0);
  const int rank = x.rank();
  const int64_t rows = x.size(rank - 2), columns = x.size(rank - 1);
  const int64_t kept = mode == "complete" ? rows : std::min(rows, columns);
  Shape q(x.shape()), r(x.shape());
  q.at[rank - 1] = kept;
  r.at[rank - 2] = kept;
  inv.output(0, q);
  inv.output(1, r);
  inv.work = x.numel * uint64_t(std::min(rows, columns));
}
}  // namespace dovetail::rules
