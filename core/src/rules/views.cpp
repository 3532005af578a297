// Views that rearrange axes, each with its shape rule and its strides: reshape, permute_dims,
// expand_dims, squeeze, broadcast_to, moveaxis, matrix_transpose, bitcast.
#include "rules/rules.hpp"

#include <algorithm>

#include "text.hpp"

namespace dovetail::rules {
// ---- reshape ------------------------------------------------------------------------------------

// The size that a -1 stands for.
static int64_t missing_size(const Inference& inv, std::span<const int64_t> shape, size_t at) {
  const uint64_t numel = inv.operand(0).numel;
  uint64_t others = 1;
  bool fits = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i == at) continue;
    if (shape[i] < 0) inv.fail("shape " + to_string(shape) + ": expected sizes of at least 0, or one -1");
    fits &= !__builtin_mul_overflow(others, uint64_t(shape[i]), &others);
  }
  if (!fits || others == 0 || numel % others != 0)
    inv.fail(
        described(inv, 0) + " of " + std::to_string(numel) + " elements does not fit shape " + to_string(shape) +
        (others ? ": expected a multiple of " + std::to_string(others) : ": -1 could be anything; say its size"));
  return int64_t(numel / others);
}

void shape_reshape(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = attr(inv, "shape");
  const std::span<int64_t> shape = ints(inv, a);
  if (const auto free = std::ranges::find(shape, -1); free != shape.end())
    *free = missing_size(inv, shape, size_t(free - shape.begin()));
  const TensorType& out = inv.output(0, shape);
  if (out.numel != x.numel)
    inv.fail(described(inv, 0) + " of " + std::to_string(x.numel) + " elements does not fit shape " +
             to_string(out.shape()) + " of " + std::to_string(out.numel));
  inv.work = out.numel;
}

// Strides for `out` over the elements of x, which is not compact: the function matches runs of contiguous axes of x
// with runs of out's axes that have as many elements. Returns false and leaves `out` alone where a run would have
// to be split.
static bool restride(const TensorType& x, TensorType& out) {
  int64_t strides[DVT_MAX_NDIM];
  std::ranges::copy(out.strides(), strides);  // axes of size 1 that remain keep the strides of a compact array
  int from = x.rank() - 1, to = out.rank() - 1;
  while (from >= 0) {
    if (x.size(from) == 1) {
      --from;
      continue;
    }
    const int64_t innermost = x.stride(from);
    int64_t run = x.size(from);
    int top = from - 1;
    for (; top >= 0; --top) {  // as far out as the axes are contiguous
      if (x.size(top) == 1) continue;
      if (x.stride(top) != innermost * run) break;
      run *= x.size(top);
    }
    int64_t step = 1;
    for (; to >= 0 && step < run; --to) {
      strides[to] = innermost * step;
      step *= out.size(to);
    }
    if (step != run) return false;
    from = top;
  }
  std::copy_n(strides, out.rank(), out.dims + DVT_MAX_NDIM);
  return true;
}

bool view_reshape(Inference& inv, int64_t&) {
  const TensorType& x = inv.operand(0);
  if (!x.dense && !restride(x, *inv.out[0])) return false;
  return true;
}

// ---- broadcast_to -------------------------------------------------------------------------------

void shape_broadcast_to(Inference& inv) {
  const std::span<const int64_t> shape = ints(inv, attr(inv, "shape"));
  const TensorType& out = inv.output(0, shape);
  if (!broadcasts_to(inv.operand(0).shape(), shape))
    inv.fail(described(inv, 0) + " does not broadcast to " + to_string(shape) +
             ": expected every axis, from the last on, to be equal or 1");
  inv.work = out.numel;
}

bool view_broadcast_to(Inference& inv, int64_t&) {
  const TensorType& x = inv.operand(0);
  TensorType& out = *inv.out[0];
  const int lead = out.rank() - x.rank();
  for (int i = 0; i < out.rank(); ++i) {
    const bool repeats = i < lead || x.size(i - lead) != out.size(i);
    if (out.size(i) != 1 || !repeats) out.stride(i) = repeats ? 0 : x.stride(i - lead);
  }
  return true;
}

// ---- permutations -------------------------------------------------------------------------------

// Axis i of the output is axis order[i] of the operand.
static void permute(Inference& inv, const int* order) {
  const TensorType& x = inv.operand(0);
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) shape.push(x.size(order[i]));
  inv.work = inv.output(0, shape).numel;
}

static bool permuted_view(Inference& inv, const int* order) {
  const TensorType& x = inv.operand(0);
  for (int i = 0; i < x.rank(); ++i) inv.out[0]->stride(i) = x.stride(order[i]);
  return true;
}

static void axes_order(Inference& inv, int* order) { std::ranges::copy(inv.attrs.i64s(attr(inv, "axes")), order); }

void shape_permute_dims(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const std::span<int64_t> axes = ints(inv, attr(inv, "axes"));
  uint32_t seen = 0;
  for (int64_t& v : axes) {
    v = axis(inv, v, x.rank());
    seen |= uint32_t{1} << v;
  }
  if (axes.size() != size_t(x.rank()) || seen != (uint32_t{1} << x.rank()) - 1)
    inv.fail("axes " + to_string(axes) + ": expected each of the " + std::to_string(x.rank()) + " axes of " +
             described(inv, 0) + " once");
  int order[DVT_MAX_NDIM];
  axes_order(inv, order);
  permute(inv, order);
}

bool view_permute_dims(Inference& inv, int64_t&) {
  int order[DVT_MAX_NDIM];
  axes_order(inv, order);
  return permuted_view(inv, order);
}

static void moveaxis_order(Inference& inv, int* order) {
  const int rank = inv.operand(0).rank();
  const auto from = inv.attrs.i64s(attr(inv, "source")), to = inv.attrs.i64s(attr(inv, "destination"));
  uint32_t moved = 0;
  std::fill_n(order, rank, -1);
  for (size_t i = 0; i < from.size(); ++i) {
    order[to[i]] = int(from[i]);
    moved |= uint32_t{1} << from[i];
  }
  for (int i = 0, next = 0; i < rank; ++i) {
    if (order[i] >= 0) continue;
    while (moved >> next & 1) ++next;
    order[i] = next++;
  }
}

void shape_moveaxis(Inference& inv) {
  const int rank = inv.operand(0).rank();
  const int attrs[] = {attr(inv, "source"), attr(inv, "destination")};
  for (const int a : attrs) {
    uint32_t seen = 0;
    for (int64_t& v : ints(inv, a)) {
      v = axis(inv, v, rank);
      if (seen >> v & 1)
        inv.fail((a == attrs[0] ? "source " : "destination ") + to_string(inv.attrs.i64s(a)) + " names axis " +
                 std::to_string(v) + " twice: expected each axis once");
      seen |= uint32_t{1} << v;
    }
  }
  if (inv.attrs.i64s(attrs[0]).size() != inv.attrs.i64s(attrs[1]).size())
    inv.fail("source " + to_string(inv.attrs.i64s(attrs[0])) + " and destination " +
             to_string(inv.attrs.i64s(attrs[1])) + " differ in length: expected as many of one as of the other");
  int order[DVT_MAX_NDIM];
  moveaxis_order(inv, order);
  permute(inv, order);
}

bool view_moveaxis(Inference& inv, int64_t&) {
  int order[DVT_MAX_NDIM];
  moveaxis_order(inv, order);
  return permuted_view(inv, order);
}

static void transpose_order(const Inference& inv, int* order) {
  const int rank = inv.operand(0).rank();
  for (int i = 0; i < rank; ++i) order[i] = i;
  std::swap(order[rank - 1], order[rank - 2]);
}

void shape_matrix_transpose(Inference& inv) {
  expect_rank(inv, 0, 2);
  int order[DVT_MAX_NDIM];
  transpose_order(inv, order);
  permute(inv, order);
}

bool view_matrix_transpose(Inference& inv, int64_t&) {
  int order[DVT_MAX_NDIM];
  transpose_order(inv, order);
  return permuted_view(inv, order);
}

// ---- axes of size 1 -----------------------------------------------------------------------------

void shape_expand_dims(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = axis_attr(inv);
  const int rank = x.rank() + int(ints(inv, a).size());
  if (rank > DVT_MAX_NDIM)
    inv.fail("the result would have " + std::to_string(rank) + " axes: expected at most " +
             std::to_string(DVT_MAX_NDIM));
  const uint32_t added = axes(inv, a, rank);
  Shape shape;
  for (int i = 0, from = 0; i < rank; ++i) shape.push(added >> i & 1 ? 1 : x.size(from++));
  inv.work = inv.output(0, shape).numel;
}

bool view_expand_dims(Inference& inv, int64_t&) {
  const TensorType& x = inv.operand(0);
  TensorType& out = *inv.out[0];
  const uint32_t added = axes(inv, axis_attr(inv), out.rank());
  for (int i = 0, from = 0; i < out.rank(); ++i)
    if (!(added >> i & 1)) out.stride(i) = x.stride(from++);
  return true;
}

void shape_squeeze(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = axis_attr(inv);
  if (!inv.attrs.given(a)) inv.fail(ErrorKind::type, "axis: expected an int or a sequence of ints, got None");
  const uint32_t dropped = axes(inv, a, x.rank());
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (!(dropped >> i & 1)) shape.push(x.size(i));
    else if (x.size(i) != 1)
      inv.fail("axis " + std::to_string(i) + " of " + described(inv, 0) + " has size " + std::to_string(x.size(i)) +
               ": expected 1");
  }
  inv.work = inv.output(0, shape).numel;
}

bool view_squeeze(Inference& inv, int64_t&) {
  const TensorType& x = inv.operand(0);
  const uint32_t dropped = axes(inv, axis_attr(inv), x.rank());
  for (int i = 0, to = 0; i < x.rank(); ++i)
    if (!(dropped >> i & 1)) inv.out[0]->stride(to++) = x.stride(i);
  return true;
}

// ---- bitcast ------------------------------------------------------------------------------------

// Bools are bytes of 0 or 1, which kernels rely on.
static void expect_values_of(Inference& inv, DType from, DType to) {
  if (to == DType::b8 && from != DType::b8)
    inv.fail(ErrorKind::type, "the bits of " + std::string(info(from).name) +
                                  " as bool: expected another dtype; x != 0 makes bools");
}

// The parts of an element are a last axis: (n) of complex64 is (n, 2) of float32, and the other way round.
void shape_bitcast(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const DTypeInfo &from = info(x.dtype), &to = info(inv.result[0]);
  expect_values_of(inv, x.dtype, inv.result[0]);
  Shape shape(x.shape());
  if (from.bytes() % to.bytes() && to.bytes() % from.bytes())
    inv.fail(ErrorKind::type, std::string(from.name) + " has " + std::to_string(from.bytes()) + " bytes and " +
                                  to.name + " " + std::to_string(to.bytes()) + ": expected a multiple");
  if (from.bytes() > to.bytes()) {
    shape.push(int64_t(from.bytes() / to.bytes()));
  } else if (from.bytes() < to.bytes()) {
    const int64_t parts = int64_t(to.bytes() / from.bytes());
    if (x.rank() == 0 || x.size(x.rank() - 1) != parts)
      inv.fail(described(inv, 0) + " as " + to.name + ": expected a last axis of " + std::to_string(parts) +
               ", the parts of an element");
    --shape.rank;
  }
  inv.work = inv.output(0, shape).numel;
}

bool view_bitcast(Inference& inv, int64_t&) {
  const TensorType& x = inv.operand(0);
  TensorType& out = *inv.out[0];
  const int64_t from = int64_t(info(x.dtype).bytes()), to = int64_t(info(out.dtype).bytes());
  if (from < to && x.stride(x.rank() - 1) != 1) return false;
  const int common = std::min(x.rank(), out.rank());
  for (int i = 0; i < common; ++i)
    if (x.stride(i) * from % to != 0 && x.size(i) > 1) return false;
  for (int i = 0; i < common; ++i) out.stride(i) = x.stride(i) * from / to;
  if (from > to) out.stride(common) = 1;
  return true;
}

// ---- reinterpret --------------------------------------------------------------------------------

void shape_reinterpret(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = attr(inv, "shape");
  const std::span<int64_t> shape = ints(inv, a);
  const uint64_t bytes = x.bytes();
  expect_values_of(inv, x.dtype, inv.result[0]);
  if (shape.size() == 1 && shape[0] == -1) shape[0] = int64_t(bytes * 8 / info(inv.result[0]).bits());
  const TensorType& out = inv.output(0, shape);
  if (out.bytes() != bytes)
    inv.fail(described(inv, 0) + " has " + std::to_string(bytes) + " bytes and " + to_string(out.shape()) + " of " +
             info(out.dtype).name + " " + std::to_string(out.bytes()) + ": expected as many");
  inv.work = out.numel;
}

bool view_reinterpret(Inference& inv, int64_t&) { return inv.operand(0).dense; }
}  // namespace dovetail::rules
