// conv and pool, against counting the positions of a window one by one.
#include "call.hpp"

namespace dovetail {
namespace {
int64_t places(int64_t n, int64_t k, int64_t stride, int64_t padding, int64_t dilation) {
  int64_t count = 0;
  for (int64_t at = -padding; at + dilation * (k - 1) < n + padding; at += stride) ++count;
  return count;
}

TEST(conv1d_counts) {
  for (int64_t n = 0; n < 9; ++n)
    for (int64_t k = 1; k < 5; ++k)
      for (int64_t stride = 1; stride < 4; ++stride)
        for (int64_t padding = 0; padding < 4; ++padding)
          for (int64_t dilation = 1; dilation < 4; ++dilation) {
            Call c("conv1d", "conv");
            c.x("x", {2, 3, n}).x("weight", {4, 3, k}).absent("bias");
            c.i64("stride", stride).i64("padding", padding).i64("dilation", dilation).i64("groups", 1);
            const int64_t expected = places(n, k, stride, padding, dilation);
            if (expected == 0) {
              CHECK_FAILS(c, value, "the window does not fit axis 2 of x");
              continue;
            }
            CHECK_SHAPE(c, "(2, 4, " + std::to_string(expected) + ")");
            CHECK_EQ(c.work, uint64_t(2 * 4 * expected * 3 * k));
          }
}

TEST(pool1d_counts) {
  for (int64_t n = 0; n < 9; ++n)
    for (int64_t k = 1; k < 5; ++k)
      for (int64_t padding = 0; padding <= k / 2; ++padding)
        for (int64_t dilation = 1; dilation < 3; ++dilation) {
          Call c("max_pool1d", "pool", "same");
          c.x("x", {2, 3, n})
              .i64("kernel_size", k)
              .none("stride")
              .i64("padding", padding)
              .i64("dilation", dilation);
          const int64_t expected = places(n, k, k, padding, dilation);
          if (expected == 0) {
            CHECK_FAILS(c, value, "the window does not fit axis 2 of x");
            continue;
          }
          CHECK_SHAPE(c, "(2, 3, " + std::to_string(expected) + ")");
          CHECK_EQ(c.list("stride"), "(" + std::to_string(k) + ",)");
        }
}

struct Conv : Call {
  Conv(const Ints& x_shape, const Ints& weight, const Ints& stride, const Ints& padding, int64_t groups)
      : Call("conv2d", "conv") {
    x("x", x_shape).x("weight", weight).absent("bias");
    ints("stride", stride).ints("padding", padding).ints("dilation", {1}).i64("groups", groups);
  }
};

TEST(conv2d) {
  Conv c({1, 6, 10, 12}, {4, 3, 3, 5}, {2}, {1, 2}, 2);
  CHECK_SHAPE(c, "(1, 4, 5, 6)");
  CHECK_EQ(c.list("stride"), "(2, 2)");
  CHECK_EQ(c.list("padding"), "(1, 2)");
  CHECK_EQ(c.list("dilation"), "(1, 1)");
  CHECK_SHAPE(Conv({0, 3, 5, 5}, {4, 3, 5, 5}, {1}, {0}, 1), "(0, 4, 1, 1)");
  CHECK_SHAPE(Call("conv2d", "conv")
                  .x("x", {1, 2, 3, 3})
                  .x("weight", {4, 2, 1, 1})
                  .x("bias", {4})
                  .i64("stride", 1)
                  .i64("padding", 0)
                  .i64("dilation", 1)
                  .i64("groups", 1),
              "(1, 4, 3, 3)");
  CHECK_FAILS(Call("conv2d", "conv")
                  .x("x", {1, 2, 3, 3})
                  .x("weight", {4, 2, 1, 1})
                  .x("bias", {2})
                  .i64("stride", 1)
                  .i64("padding", 0)
                  .i64("dilation", 1)
                  .i64("groups", 1),
              value, "bias of shape (2,) does not fit");
  CHECK_FAILS(Conv({3, 5, 5}, {4, 3, 5, 5}, {1}, {0}, 1), value, "x of shape (3, 5, 5) has 3 axes: expected 4");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 2, 3, 3}, {1}, {0}, 1), value,
              "expected x's 3 channels to be weight's 2 times 1 group");
  CHECK_FAILS(Conv({1, 6, 5, 5}, {5, 3, 3, 3}, {1}, {0}, 2), value, "5 filters: expected a multiple of 2 groups");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 3, 3, 3}, {1}, {0}, 0), value, "groups: expected at least 1, got 0");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 3, 3, 3}, {0}, {0}, 1), value, "stride: expected at least 1, got 0");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 3, 3, 3}, {1}, {-1}, 1), value, "padding: expected at least 0, got -1");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 3, 3, 3}, {1, 1, 1}, {0}, 1), value,
              "stride (1, 1, 1): expected one int or 2 ints, got 3");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 3, 3, 3}, {1}, {INT64_MAX}, 1), value, "padding: expected at most 2147483647");
  CHECK_FAILS(Conv({1, 3, 5, 5}, {4, 3, 0, 3}, {1}, {0}, 1), value, "window of size 0");
  CHECK_FAILS(
      Conv({1, 3, 2, 5}, {4, 3, 3, 3}, {1}, {0}, 1), value,
      "[conv2d] the window does not fit axis 2 of x of shape (1, 3, 2, 5): expected at least 3 values, got 2 and "
      "padding 0 on each side");
  CHECK_FAILS(Call("conv", "conv").x("x", {1, 3, 2}).x("weight", {4, 3, 3}), runtime, "name it like conv2d");
}

TEST(pool2d) {
  Call c("avg_pool2d", "pool", "float");
  c.x("x", {1, 3, 8, 9})
      .ints("kernel_size", {2, 3})
      .none("stride")
      .ints("padding", {1})
      .flag("count_include_pad", true);
  CHECK_SHAPE(c, "(1, 3, 5, 3)");
  CHECK_EQ(c.list("stride"), "(2, 3)");
  CHECK_EQ(c.work, 3u * 5 * 3 * 6);
  CHECK_FAILS(
      Call("avg_pool2d", "pool").x("x", {1, 3, 8, 9}).i64("kernel_size", 3).none("stride").i64("padding", 2), value,
      "padding 2 on axis 2: expected at most half of kernel_size, 1");
  CHECK_FAILS(
      Call("avg_pool2d", "pool").x("x", {1, 3, 8, 9}).i64("kernel_size", 0).none("stride").i64("padding", 0), value,
      "kernel_size: expected at least 1");
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
