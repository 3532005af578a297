// Rules of windows that move over the last axes: sliding_window; conv and pool, whose number of spatial axes is the
// digit in the op's name; and the gradients of these, of as many as their operands have.
#include <algorithm>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
namespace {
constexpr int64_t kLargest = INT32_MAX;  // limits a window's attributes, so that their products stay within 63 bits

int spatial_axes(const Inference& inv) {
  const std::string& name = inv.op.spec.name;
  if (const size_t at = name.rfind('d');
      at != std::string::npos && at > 0 && name[at - 1] >= '1' && name[at - 1] <= '9')
    return name[at - 1] - '0';
  inv.fail(ErrorKind::runtime, "the shape rule '" + inv.op.spec.shape +
                                   "' takes the number of spatial axes from the op's name: name it like conv2d");
}

std::span<int64_t> window(Inference& inv, const char* name, int n, int64_t least) {
  const auto values = ints(inv, attr(inv, name), n, least);
  for (const int64_t v : values)
    if (v > kLargest)
      inv.fail(std::string(name) + ": expected at most " + std::to_string(kLargest) + ", got " + std::to_string(v));
  return values;
}

// The number of positions in x of a window of `size` taps, `dilation` apart.
int64_t places(const Inference& inv, std::span<const int64_t> x, int axis, int64_t size, int64_t stride,
               int64_t padding, int64_t dilation) {
  const int64_t n = x[size_t(axis)], reach = dilation * (size - 1) + 1;
  if (n + 2 * padding < reach)
    inv.fail("the window does not fit axis " + std::to_string(axis) + " of x of shape " + to_string(x) +
             ": expected at least " + std::to_string(reach) + " values, got " + std::to_string(n) +
             " and padding " + std::to_string(padding) + " on each side");
  return (n + 2 * padding - reach) / stride + 1;
}

// An attribute that is the shape of an array with n spatial axes.
std::span<const int64_t> shape_attr(Inference& inv, const char* name, int n) {
  const auto shape = ints(inv, attr(inv, name));
  if (int(shape.size()) != n + 2)
    inv.fail(std::string(name) + " " + to_string(shape) + ": expected a shape of " + std::to_string(n + 2) +
             " axes");
  for (const int64_t size : shape)
    if (size < 0 || size > INT64_MAX / 8)
      inv.fail(std::string(name) + " " + to_string(shape) + ": expected a size of 0 or more for each axis");
  return shape;
}

// The shape of the convolution of an x with a weight, and of how many products each of its elements is the sum.
Shape convolve(Inference& inv, std::span<const int64_t> x, std::span<const int64_t> weight, uint64_t& terms) {
  const int n = int(x.size()) - 2;
  const int64_t groups = integer(inv, attr(inv, "groups"), 1), filters = weight[0];
  if (x[1] % groups || x[1] / groups != weight[1])
    inv.fail("shapes " + to_string(x) + " and " + to_string(weight) + " do not match: expected x's " +
             std::to_string(x[1]) + " channels to be weight's " + std::to_string(weight[1]) + " times " +
             std::to_string(groups) + (groups == 1 ? " group" : " groups"));
  if (filters % groups)
    inv.fail(std::to_string(filters) + " filters: expected a multiple of " + std::to_string(groups) + " groups");
  const auto stride = window(inv, "stride", n, 1), padding = window(inv, "padding", n, 0),
             dilation = window(inv, "dilation", n, 1);
  Shape shape;
  shape.push(x[0]);
  shape.push(filters);
  terms = uint64_t(weight[1]);
  for (int i = 0; i < n; ++i) {
    const int64_t size = weight[size_t(2 + i)];
    if (size < 1 || size > kLargest)
      inv.fail("weight of shape " + to_string(weight) + " has a window of size " + std::to_string(size) +
               ": expected 1 to " + std::to_string(kLargest));
    shape.push(places(inv, x, 2 + i, size, stride[i], padding[i], dilation[i]));
    terms *= uint64_t(size);
  }
  return shape;
}

// The shape of what a pool over n spatial axes makes of an x, and how many elements each of its windows has.
Shape pool(Inference& inv, std::span<const int64_t> x, uint64_t& taps) {
  const int n = int(x.size()) - 2;
  const auto size = window(inv, "kernel_size", n, 1);
  if (const int a = attr(inv, "stride"); !inv.attrs.given(a)) inv.attrs.set_ints(a, size);
  const auto stride = window(inv, "stride", n, 1), padding = window(inv, "padding", n, 0);
  const bool dilates = find_attr(inv, "dilation") >= 0;
  const auto dilation = dilates ? window(inv, "dilation", n, 1) : std::span<int64_t>();
  Shape shape(x.first(2));
  taps = 1;
  for (int i = 0; i < n; ++i) {
    if (2 * padding[i] > size[i])
      inv.fail("padding " + std::to_string(padding[i]) + " on axis " + std::to_string(2 + i) +
               ": expected at most half of kernel_size, " + std::to_string(size[i] / 2));
    shape.push(places(inv, x, 2 + i, size[i], stride[i], padding[i], dilates ? dilation[i] : 1));
    taps *= uint64_t(size[i]);
  }
  return shape;
}

constexpr int kMostSpatialAxes = 3;

// How many spatial axes operand 0 of a gradient has.
int spatial_axes_of(const Inference& inv) {
  expect_rank(inv, 0, 3, 2 + kMostSpatialAxes);
  return inv.operand(0).rank() - 2;
}

// The size of an axis that a transposed convolution makes: from the first tap of the first place to the last tap of
// the last one, without the padding.
int64_t spread_places(const Inference& inv, int axis, int64_t size, int64_t stride, int64_t padding,
                      int64_t output_padding, int64_t dilation) {
  if (size < 1 || size > kLargest)
    inv.fail(described(inv, 1) + " has a window of size " + std::to_string(size) + ": expected 1 to " +
             std::to_string(kLargest));
  if (output_padding >= std::max(stride, dilation))
    inv.fail("output_padding: got " + std::to_string(output_padding) + ", expected less than stride or dilation, " +
             std::to_string(std::max(stride, dilation)));
  const int64_t n = inv.operand(0).size(axis);
  int64_t spread;
  if (__builtin_mul_overflow(n - 1, stride, &spread) || spread > INT64_MAX / 2)
    inv.fail("the result's axis " + std::to_string(axis) + " is too large: expected at most 2^58 elements");
  const int64_t places = spread + dilation * (size - 1) + 1 + output_padding - 2 * padding;
  if (n < 1 || places < 1)
    inv.fail("axis " + std::to_string(axis) + " of " + described(inv, 0) + " would become " +
             std::to_string(places) + " values: expected at least one value, and padding that leaves one");
  return places;
}
}  // namespace

void shape_conv(Inference& inv) {
  const TensorType &x = inv.operand(0), &weight = inv.operand(1);
  const int n = spatial_axes(inv);
  expect_rank(inv, 0, n + 2, n + 2);
  expect_rank(inv, 1, n + 2, n + 2);
  uint64_t terms;
  const Shape shape = convolve(inv, x.shape(), weight.shape(), terms);
  if (inv.has(2)) expect_shape(inv, 2, weight.shape().first(1), "one value for each filter");
  inv.work = inv.output(0, shape).numel * terms;
}

void shape_conv_grad_input(Inference& inv) {
  const TensorType& grad = inv.operand(1);
  const auto x = shape_attr(inv, "input_size", spatial_axes_of(inv));
  uint64_t terms;
  expect_shape(inv, 1, convolve(inv, x, inv.operand(0).shape(), terms), "that of the convolution's result");
  inv.output(0, x);
  inv.work = grad.numel * terms;
}

void shape_conv_grad_weight(Inference& inv) {
  const TensorType& grad = inv.operand(1);
  const auto weight = shape_attr(inv, "weight_size", spatial_axes_of(inv));
  uint64_t terms;
  expect_shape(inv, 1, convolve(inv, inv.operand(0).shape(), weight, terms), "that of the convolution's result");
  inv.output(0, weight);
  inv.work = grad.numel * terms;
}

void shape_conv_transpose(Inference& inv) {
  const TensorType &x = inv.operand(0), &weight = inv.operand(1);
  const int n = spatial_axes(inv);
  expect_rank(inv, 0, n + 2, n + 2);
  expect_rank(inv, 1, n + 2, n + 2);
  const int64_t groups = integer(inv, attr(inv, "groups"), 1), per_group = weight.size(1);
  if (x.size(1) != weight.size(0))
    inv.fail("shapes " + to_string(x.shape()) + " and " + to_string(weight.shape()) +
             " do not match: expected x's " + std::to_string(x.size(1)) + " channels to be weight's " +
             std::to_string(weight.size(0)));
  if (x.size(1) % groups)
    inv.fail(std::to_string(x.size(1)) + " channels: expected a multiple of " + std::to_string(groups) + " groups");
  int64_t filters;
  if (__builtin_mul_overflow(per_group, groups, &filters)) inv.fail("groups: too many filters");
  if (inv.has(2)) expect_shape(inv, 2, {&filters, 1}, "one value for each filter");
  const auto stride = window(inv, "stride", n, 1), padding = window(inv, "padding", n, 0),
             output_padding = window(inv, "output_padding", n, 0), dilation = window(inv, "dilation", n, 1);
  Shape shape;
  shape.push(x.size(0));
  shape.push(filters);
  for (int i = 0; i < n; ++i)
    shape.push(
        spread_places(inv, 2 + i, weight.size(2 + i), stride[i], padding[i], output_padding[i], dilation[i]));
  inv.output(0, shape);
  inv.work = x.numel * uint64_t(per_group);
  for (int i = 0; i < n; ++i) inv.work *= uint64_t(weight.size(2 + i));
}

void shape_pool(Inference& inv) {
  const int n = spatial_axes(inv);
  expect_rank(inv, 0, n + 2, n + 2);
  uint64_t taps;
  const Shape shape = pool(inv, inv.operand(0).shape(), taps);
  inv.work = inv.output(0, shape).numel * taps;
}

void shape_max_pool_grad(Inference& inv) {
  const auto x = inv.operand(0).shape();
  spatial_axes_of(inv);
  uint64_t taps;
  expect_shape(inv, 1, pool(inv, x, taps), "that of the pool's result");
  inv.output(0, x);
  inv.work = inv.operand(1).numel * taps;
}

void shape_avg_pool_grad(Inference& inv) {
  const auto x = shape_attr(inv, "input_size", spatial_axes_of(inv));
  uint64_t taps;
  expect_shape(inv, 0, pool(inv, x, taps), "that of the pool's result");
  inv.output(0, x);
  inv.work = inv.operand(0).numel * taps;
}

// ---- sliding_window ---------------------------------------------------------------------------------------------

void shape_sliding_window(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int n = int(ints(inv, attr(inv, "kernel_size")).size());
  if (n > x.rank()) inv.fail("kernel_size for " + std::to_string(n) + " axes: " + described(inv, 0) + " has fewer");
  const auto size = window(inv, "kernel_size", n, 1), stride = window(inv, "stride", n, 1),
             dilation = window(inv, "dilation", n, 1);
  Shape shape;
  const int first = x.rank() - n;
  shape.append(x, 0, first);
  for (int i = 0; i < n; ++i) shape.push(places(inv, x.shape(), first + i, size[i], stride[i], 0, dilation[i]));
  for (int i = 0; i < n; ++i) shape.push(size[i]);
  inv.work = inv.output(0, shape).numel;
}

bool view_sliding_window(Inference& inv, int64_t&) {
  const TensorType& x = inv.operand(0);
  TensorType& out = *inv.out[0];
  const auto stride = inv.attrs.i64s(attr(inv, "stride")), dilation = inv.attrs.i64s(attr(inv, "dilation"));
  const int n = int(stride.size()), first = x.rank() - n;
  for (int i = 0; i < first; ++i) out.stride(i) = x.stride(i);
  for (int i = 0; i < n; ++i) {
    // Of one place or one tap the step is never taken; the factor could leave 63 bits.
    out.stride(first + i) = out.size(first + i) > 1 ? x.stride(first + i) * stride[size_t(i)] : 1;
    out.stride(first + n + i) = out.size(first + n + i) > 1 ? x.stride(first + i) * dilation[size_t(i)] : 1;
  }
  return true;
}
}  // namespace dovetail::rules
