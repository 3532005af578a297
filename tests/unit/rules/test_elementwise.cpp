// same and broadcast, exhaustively on small shapes, and their failures.
#include <numeric>
#include <optional>

#include "call.hpp"

namespace dovetail {
namespace {
// Every shape of up to `rank` axes with sizes out of `sizes`.
std::vector<Ints> all_shapes(int rank, const Ints& sizes) {
  std::vector<Ints> shapes{{}};
  for (size_t first = 0, n = 1; rank-- > 0; first = n, n = shapes.size())
    for (size_t i = first; i < n; ++i)
      for (const int64_t s : sizes) {
        shapes.push_back(shapes[i]);
        shapes.back().push_back(s);
      }
  return shapes;
}

// By the definition: pad with 1 on the left, then compare axis by axis.
std::optional<Ints> broadcast(const std::vector<Ints>& shapes) {
  size_t rank = 0;
  for (const Ints& s : shapes) rank = std::max(rank, s.size());
  Ints out(rank, 1);
  for (Ints s : shapes) {
    s.insert(s.begin(), rank - s.size(), 1);
    for (size_t i = 0; i < rank; ++i) {
      if (s[i] != 1 && out[i] != 1 && s[i] != out[i]) return std::nullopt;
      if (s[i] != 1) out[i] = s[i];
    }
  }
  return out;
}

void compare(Call& c, const std::vector<Ints>& shapes) {
  if (const auto expected = broadcast(shapes)) {
    CHECK_SHAPE(c, to_string(*expected));
    uint64_t n = 1;
    for (const int64_t s : *expected) n *= uint64_t(s);
    CHECK_EQ(c.work, n);
  } else {
    CHECK_FAILS(c, value, "do not broadcast: expected ");
  }
}

TEST(broadcast_of_two) {
  const auto shapes = all_shapes(3, {0, 1, 2, 3});
  for (const Ints& a : shapes)
    for (const Ints& b : shapes) {
      Call c("add", "broadcast");
      c.x("x1", a).x("x2", b);
      compare(c, {a, b});
    }
}

TEST(broadcast_of_three) {
  const auto shapes = all_shapes(2, {0, 1, 2});
  for (const Ints& a : shapes)
    for (const Ints& b : shapes)
      for (const Ints& d : shapes) {
        Call c("where", "broadcast");
        c.x("condition", a, DType::b8, ParamKind::mask).x("x1", b).x("x2", d);
        compare(c, {a, b, d});
      }
}

TEST(broadcast_skips_absent_operands) {
  CHECK_SHAPE(Call("clip", "broadcast").x("x", {2, 3}).absent("min").x("max", {3}), "(2, 3)");
  CHECK_SHAPE(Call("clip", "broadcast").x("x", {}).absent("min").absent("max"), "()");
}

TEST(broadcast_failures_name_the_axis) {
  CHECK_FAILS(
      Call("add", "broadcast").x("x1", {2, 3}).x("x2", {4, 3}), value,
      "[add] shapes (2, 3) and (4, 3) do not broadcast: expected x1's axis -2 of 2 to equal x2's 4, or one of "
      "them to be 1");
  CHECK_FAILS(Call("where", "broadcast").x("c", {1}, DType::b8, ParamKind::mask).x("x1", {5, 2}).x("x2", {3}),
              value, "expected x1's axis -1 of 2 to equal x2's 3");
}

TEST(sixteen_axes_but_not_seventeen) {
  const Ints sixteen(16, 1);
  CHECK_SHAPE(Call("add", "broadcast").x("x1", sixteen).x("x2", {2}), to_string([] {
                Ints s(16, 1);
                s[15] = 2;
                return s;
              }()));
  CHECK_SHAPE(Call("exp", "same", "float").x("x", sixteen), to_string(sixteen));
  const Ints seventeen(17, 1);
  CHECK_FAILS(Call("zeros", "from_shape", "given").ints("shape", seventeen), value,
              "has 17 axes: expected at most 16");
}

TEST(sizes_that_overflow) {
  const int64_t big = int64_t{1} << 30;
  CHECK_FAILS(Call("add", "broadcast").x("x1", {big, 1}).x("x2", {big}), value, "is too large");
  CHECK_FAILS(Call("zeros", "from_shape", "given").ints("shape", {INT64_MAX, INT64_MAX}), value, "is too large");
  CHECK_FAILS(Call("zeros", "from_shape", "given").ints("shape", {INT64_MAX}), value, "is too large");
  CHECK_FAILS(Call("zeros", "from_shape", "given").ints("shape", {0, INT64_MAX, 4}), value, "is too large");
  CHECK_FAILS(Call("zeros", "from_shape", "given").ints("shape", {2, -1}), value,
              "[zeros] shape (2, -1) has a negative size: expected axis 1 to be at least 0, got -1");
  CHECK_SHAPE(Call("zeros", "from_shape", "given").ints("shape", {0, int64_t{1} << 40}), "(0, 1099511627776)");
  CHECK_SHAPE(Call("zeros", "from_shape", "given").i64("shape", 3), "(3,)");
  CHECK_FAILS(Call("zeros", "from_shape", "given").f64("shape", 3), type, "expected an int or a sequence of ints");
}

TEST(dense_strides_and_density) {
  for (const Ints& shape : all_shapes(4, {0, 1, 2, 3})) {
    Tensor t;
    t.set_type(DType::f32, nullptr);
    t.set_shape(shape);
    CHECK_EQ(t.numel, uint64_t(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    int64_t step = 1;
    for (int i = t.rank(); i-- > 0; step *= std::max<int64_t>(shape[i], 1)) CHECK_EQ(t.stride(i), step);
    CHECK(t.dense);
    t.dense = false, t.numel = 99;
    t.update_dense();
    CHECK(t.dense);
    for (int i = 0; i < t.rank(); ++i) {
      Tensor gap = t;
      gap.stride(i) += 1;
      gap.update_dense();
      CHECK_EQ(gap.dense, t.size(i) == 1 || t.numel == 0);
      CHECK_EQ(gap.numel, t.numel);
    }
  }
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
