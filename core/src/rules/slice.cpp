// Rules of rectangular regions with forward steps: slice, set_slice, and diagonal.
#include "rules/rules.hpp"

#include <algorithm>

#include "text.hpp"

namespace dovetail::rules {
struct Region {
  std::span<int64_t> start, stop, step;  // one per axis
  Shape shape;
};

static Region region(Inference& inv) {
  const TensorType& x = inv.operand(0);
  Region r{ints(inv, attr(inv, "start")), ints(inv, attr(inv, "stop")), ints(inv, attr(inv, "step")), {}};
  const size_t rank = size_t(x.rank());
  if (r.start.size() != rank || r.stop.size() != rank || r.step.size() != rank)
    inv.fail("start, stop and step have " + std::to_string(r.start.size()) + ", " + std::to_string(r.stop.size()) +
             " and " + std::to_string(r.step.size()) + " ints: expected one for each of the " +
             std::to_string(rank) + " axes of " + described(inv, 0));
  for (int i = 0; i < x.rank(); ++i) {
    if (r.start[i] < 0 || r.start[i] > r.stop[i] || r.stop[i] > x.size(i))
      inv.fail("start " + std::to_string(r.start[i]) + " and stop " + std::to_string(r.stop[i]) + " on axis " +
               std::to_string(i) + " of " + described(inv, 0) +
               ": expected 0 <= start <= stop <= " + std::to_string(x.size(i)));
    if (r.step[i] < 1)
      inv.fail("step " + std::to_string(r.step[i]) + " on axis " + std::to_string(i) + ": expected at least 1");
    const int64_t length = r.stop[i] - r.start[i];
    r.shape.push(length ? (length - 1) / r.step[i] + 1 : 0);
    r.step[i] = std::min(r.step[i], std::max(length, int64_t{1}));  // so that strides times steps do not overflow
  }
  return r;
}

void shape_slice(Inference& inv) { inv.work = inv.output(0, region(inv).shape).numel; }

bool view_slice(Inference& inv, int64_t& offset) {
  const TensorType& x = inv.operand(0);
  TensorType& out = *inv.out[0];
  const Region r = region(inv);
  offset = 0;
  for (int i = 0; i < out.rank(); ++i) {
    offset += r.start[i] * x.stride(i);
    out.stride(i) = x.stride(i) * r.step[i];
  }
  return true;
}

void shape_set_slice(Inference& inv) {
  const Region r = region(inv);
  if (!broadcasts_to(inv.operand(1).shape(), r.shape))
    inv.fail(described(inv, 1) + " do not broadcast to the region of shape " + to_string(r.shape) +
             ": expected every axis, from the last on, to be equal or 1");
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

// ---- diagonal -----------------------------------------------------------------------------------

static int64_t diagonal_start(const Inference& inv, int64_t* rows, int64_t* columns) {
  const TensorType& x = inv.operand(0);
  const int64_t offset = integer(inv, attr(inv, "offset"));
  *rows = x.size(x.rank() - 2), *columns = x.size(x.rank() - 1);
  const int64_t down = offset < 0 ? (offset < -*rows ? *rows : -offset) : 0;
  const int64_t right = offset > 0 ? std::min(offset, *columns) : 0;
  *rows -= down, *columns -= right;
  return down * x.stride(x.rank() - 2) + right * x.stride(x.rank() - 1);
}

void shape_diagonal(Inference& inv) {
  expect_rank(inv, 0, 2);
  const TensorType& x = inv.operand(0);
  int64_t rows, columns;
  diagonal_start(inv, &rows, &columns);
  Shape shape;
  shape.append(x, 0, x.rank() - 2);
  shape.push(std::min(rows, columns));
  inv.work = inv.output(0, shape).numel;
}

bool view_diagonal(Inference& inv, int64_t& offset) {
  const TensorType& x = inv.operand(0);
  TensorType& out = *inv.out[0];
  int64_t rows, columns;
  offset = diagonal_start(inv, &rows, &columns);
  const int last = x.rank() - 2;
  for (int i = 0; i < last; ++i) out.stride(i) = x.stride(i);
  out.stride(last) = x.stride(last) + x.stride(last + 1);
  return true;
}
}  // namespace dovetail::rules
