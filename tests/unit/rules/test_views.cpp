// Views: every element of the result is where NumPy's semantics require. Operands are compact, permuted,
// sliced and repeated, as views of views are.
#include <algorithm>
#include <optional>
#include <random>

#include "call.hpp"

namespace dovetail {
namespace {
std::mt19937 rng(7);
int64_t below(int64_t n) { return int64_t(rng() % uint64_t(n)); }

struct Buffer {
  std::vector<int32_t> values = std::vector<int32_t>(100000);
};

Tensor compact(Buffer& b, const Ints& shape) {
  Tensor t;
  t.set_type(DType::i32, nullptr);
  t.set_shape(shape);
  t.view.data = b.values.data();
  return t;
}

// A random tensor of that shape with gaps, permuted axes or repeated elements.
Tensor strided(Buffer& b, const Ints& shape) {
  Tensor t = compact(b, shape);
  if (t.numel == 0 || below(4) == 0) return t;
  std::vector<int> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int(i);
  if (below(2)) std::shuffle(order.begin(), order.end(), rng);
  int64_t step = 1 + below(2);
  for (size_t i = order.size(); i-- > 0;) {
    t.stride(order[i]) = below(6) == 0 ? 0 : step;
    step *= t.size(order[i]) + (below(3) == 0);
  }
  t.view.data = b.values.data() + below(5);
  t.update_dense();
  return t;
}

Ints random_shape(int most, int64_t largest) {
  Ints s(size_t(below(most + 1)));
  for (int64_t& n : s) n = below(12) == 0 ? 0 : below(3) == 0 ? 1 : 1 + below(largest);
  return s;
}

// Addresses of the elements in row-major order.
std::vector<const int32_t*> elements(const Tensor& t) {
  std::vector<const int32_t*> at;
  for (uint64_t n = 0; n < t.numel; ++n) {
    const auto* p = static_cast<const int32_t*>(t.view.data);
    uint64_t left = n;
    for (int i = t.rank(); i-- > 0; left /= uint64_t(t.size(i)))
      p += int64_t(left % uint64_t(t.size(i))) * t.stride(i);
    at.push_back(p);
  }
  return at;
}

const int32_t* at(const Tensor& t, const Ints& index) {
  const auto* p = static_cast<const int32_t*>(t.view.data);
  for (int i = 0; i < t.rank(); ++i) p += index[i] * t.stride(i);
  return p;
}

// Calls f with every index of `shape`.
template <class F>
void each(std::span<const int64_t> shape, F f) {
  Ints index(shape.size(), 0);
  for (const int64_t n : shape)
    if (n == 0) return;
  for (;;) {
    f(index);
    size_t i = shape.size();
    while (i > 0 && ++index[i - 1] == shape[i - 1]) index[--i] = 0;
    if (i == 0) return;
  }
}

// Runs the shape rule and the view; false if the view needs a compact operand.
bool view(Call& c) {
  c.infer();
  Inference inv = c.inference();
  const Tensor before = c.outs[0];
  int64_t offset = 0;
  if (!rules::view(c.op.spec.shape)(inv, offset)) {
    // The caller retries with a compact operand, so the result must still be the shape rule's.
    CHECK(std::ranges::equal(c.outs[0].strides(), before.strides()) && c.outs[0].dense && !offset);
    return false;
  }
  c.outs[0].update_dense();
  c.outs[0].view.data = static_cast<int32_t*>(c.operands[0].view.data) + offset;
  for (const int64_t s : c.outs[0].strides()) CHECK(s >= 0);
  return true;
}

// Are there strides for `shape` over these elements? Checked by trying the only candidates.
bool expressible(const std::vector<const int32_t*>& at, const Ints& shape) {
  Tensor t;
  t.set_type(DType::i32, nullptr);
  t.set_shape(shape);
  t.view.data = const_cast<int32_t*>(at[0]);
  for (int i = 0, n = t.rank(); i < n; ++i) {
    uint64_t flat = 1;
    for (int j = i + 1; j < n; ++j) flat *= uint64_t(shape[j]);
    t.stride(i) = shape[i] > 1 ? at[flat] - at[0] : 0;
    if (t.stride(i) < 0) return false;
  }
  return elements(t) == at;
}

// A shape of equal size, by moving prime factors between axes.
Ints regrouped(uint64_t numel) {
  Ints shape(size_t(1 + below(5)), 1);
  for (uint64_t p = 2; numel > 1; ++p)
    for (; numel % p == 0; numel /= p) shape[size_t(below(int64_t(shape.size())))] *= int64_t(p);
  return shape;
}

TEST(reshape) {
  Buffer b;
  int refused = 0, restrided = 0;
  for (int round = 0; round < 20000; ++round) {
    const Tensor x = strided(b, random_shape(4, 6));
    if (x.numel == 0) continue;
    Ints shape = regrouped(x.numel), asked = shape;
    if (below(3) == 0) asked[size_t(below(int64_t(asked.size())))] = -1;
    Call c("reshape", "reshape", "same");
    c.operand("x", x).ints("shape", asked);
    const bool possible = expressible(elements(x), shape);
    CHECK_EQ(view(c), possible);
    CHECK_EQ(c.list("shape"), to_string(shape));
    if (possible) CHECK(elements(c.outs[0]) == elements(x));
    (possible ? restrided : refused) += !x.dense;
  }
  CHECK(refused > 1000 && restrided > 1000);
}

TEST(reshape_of_nothing_and_failures) {
  Buffer b;
  const auto shape = [&](const Ints& from, const Ints& to) {
    Call c("reshape", "reshape", "same");
    c.operand("x", compact(b, from)).ints("shape", to);
    CHECK(view(c));
    return to_string(c.outs[0].shape());
  };
  CHECK_EQ(shape({0, 3}, {3, -1}), "(3, 0)");
  CHECK_EQ(shape({0, 3}, {5, 0, 2}), "(5, 0, 2)");
  CHECK_EQ(shape({}, {}), "()");
  CHECK_EQ(shape({}, {1, 1}), "(1, 1)");
  CHECK_EQ(shape({1}, {}), "()");
  CHECK_EQ(shape({6}, {-1}), "(6,)");
  const auto refused = [](const Ints& from, const Ints& to, const char* text) {
    CHECK_FAILS(Call("reshape", "reshape").x("x", from).ints("shape", to), value, text);
  };
  refused({2, 3}, {4}, "[reshape] x of shape (2, 3) of 6 elements does not fit shape (4,) of 4");
  refused({2, 3}, {-1, 4}, "x of shape (2, 3) of 6 elements does not fit shape (-1, 4): expected a multiple of 4");
  refused({0}, {-1, 0}, "-1 could be anything");
  refused({2, 3}, {-1, -1}, "shape (-1, -1): expected sizes of at least 0, or one -1");
  refused({2, 3}, {-2, 3}, "negative size");
  refused({2, 3}, {-1, INT64_MAX, INT64_MAX}, "does not fit");
  refused({1}, Ints(17, 1), "17 axes");
}

TEST(permutations) {
  Buffer b;
  for (int round = 0; round < 300; ++round) {
    const Tensor x = strided(b, random_shape(4, 4));
    const int rank = x.rank();
    Ints order(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) order[size_t(i)] = i;
    std::shuffle(order.begin(), order.end(), rng);
    Ints asked = order;
    for (int64_t& v : asked) v -= below(2) ? rank : 0;
    Call c("permute_dims", "permute_dims", "same");
    c.operand("x", x).ints("axes", asked);
    CHECK(view(c));
    CHECK_EQ(c.list("axes"), to_string(order));
    each(c.outs[0].shape(), [&](const Ints& index) {
      Ints from(index.size());
      for (size_t i = 0; i < index.size(); ++i) from[size_t(order[i])] = index[i];
      CHECK(at(c.outs[0], index) == at(x, from));
    });
    if (rank < 2) continue;
    Call t("matrix_transpose", "matrix_transpose", "same");
    t.operand("x", x);
    CHECK(view(t));
    each(x.shape(), [&](Ints index) {
      const int32_t* p = at(x, index);
      std::swap(index[index.size() - 1], index[index.size() - 2]);
      CHECK(at(t.outs[0], index) == p);
    });
  }
  CHECK_FAILS(Call("permute_dims", "permute_dims").x("x", {2, 3}).ints("axes", {0}), value,
              "axes (0,): expected each of the 2 axes of x of shape (2, 3) once");
  CHECK_FAILS(Call("permute_dims", "permute_dims").x("x", {2, 3}).ints("axes", {0, 0}), value, "axes (0, 0)");
  CHECK_FAILS(Call("permute_dims", "permute_dims").x("x", {2, 3}).ints("axes", {0, 2}), axis,
              "axis 2 is out of range");
  CHECK_FAILS(Call("matrix_transpose", "matrix_transpose").x("x", {2}), value, "expected at least 2");
}

TEST(moveaxis) {
  const auto moved = [](const Ints& from, const Ints& to) {
    Call c("moveaxis", "moveaxis", "same");
    c.x("x", {2, 3, 4, 5}).ints("source", from).ints("destination", to);
    c.shape();
    CHECK(view(c));
    for (int i = 0; i < 4; ++i)  // the axes differ in size
      CHECK_EQ(c.outs[0].stride(i), c.operands[0].stride(int(c.outs[0].size(i) - 2)));
    return to_string(c.outs[0].shape());
  };
  CHECK_EQ(moved({0}, {-1}), "(3, 4, 5, 2)");
  CHECK_EQ(moved({0, 1}, {-1, -2}), "(4, 5, 3, 2)");
  CHECK_EQ(moved({3, 0}, {0, 2}), "(5, 3, 2, 4)");
  CHECK_EQ(moved({}, {}), "(2, 3, 4, 5)");
  CHECK_FAILS(Call("moveaxis", "moveaxis").x("x", {2, 3}).ints("source", {0, 1}).ints("destination", {0}), value,
              "source (0, 1) and destination (0,) differ in length");
  CHECK_FAILS(Call("moveaxis", "moveaxis").x("x", {2, 3}).ints("source", {0, 0}).ints("destination", {0, 1}), value,
              "source (0, 0) names axis 0 twice");
}

TEST(expand_dims_and_squeeze) {
  Buffer b;
  for (int round = 0; round < 300; ++round) {
    const Tensor x = strided(b, random_shape(3, 4));
    Call c("expand_dims", "expand_dims", "same");
    const int extra = int(below(3)) + (x.rank() == 0), rank = x.rank() + extra;
    Ints all(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) all[size_t(i)] = i;
    std::shuffle(all.begin(), all.end(), rng);
    Ints axes(all.begin(), all.begin() + extra), asked = axes;
    for (int64_t& v : asked) v -= below(2) ? rank : 0;
    c.operand("x", x).ints("axis", asked);
    CHECK(view(c));
    CHECK(elements(c.outs[0]) == elements(x));
    for (const int64_t a : axes) CHECK_EQ(c.outs[0].size(int(a)), 1);

    Call s("squeeze", "squeeze", "same");
    s.operand("x", c.outs[0]).ints("axis", asked);
    CHECK(view(s));
    CHECK(s.outs[0].same_shape(x) &&
          std::equal(x.strides().begin(), x.strides().end(), s.outs[0].strides().begin()));
  }
  CHECK_SHAPE(Call("expand_dims", "expand_dims").x("x", {2, 3}).i64("axis", -1), "(2, 3, 1)");
  CHECK_FAILS(Call("expand_dims", "expand_dims").x("x", {2, 3}).i64("axis", 3), axis,
              "axis 3 is out of range: expected -3 to 2 for the result from x of shape (2, 3)");
  CHECK_FAILS(Call("expand_dims", "expand_dims").x("x", {2}).ints("axis", {0, -3}), value, "names axis 0 twice");
  CHECK_FAILS(Call("expand_dims", "expand_dims").x("x", Ints(16, 1)).i64("axis", 0), value,
              "17 axes: expected at most 16");
  CHECK_FAILS(Call("squeeze", "squeeze").x("x", {2, 1}).i64("axis", 0), value,
              "[squeeze] axis 0 of x of shape (2, 1) has size 2: expected 1");
  CHECK_FAILS(Call("squeeze", "squeeze").x("x", {2, 1}).none("axis"), type, "got None");
}

TEST(broadcast_to) {
  Buffer b;
  for (int round = 0; round < 500; ++round) {
    const Tensor x = strided(b, random_shape(3, 4));
    Ints shape(x.shape().begin(), x.shape().end());
    for (int64_t& n : shape)
      if (n == 1) n = below(4);
    for (int64_t extra = below(3); extra > 0; --extra) shape.insert(shape.begin(), below(4));
    Call c("broadcast_to", "broadcast_to", "same");
    c.operand("x", x).ints("shape", shape);
    CHECK(view(c));
    CHECK_EQ(to_string(c.outs[0].shape()), to_string(shape));
    each(shape, [&](const Ints& index) {
      Ints from(index.end() - x.rank(), index.end());
      for (int i = 0; i < x.rank(); ++i) from[size_t(i)] %= x.size(i);
      CHECK(at(c.outs[0], index) == at(x, from));
    });
  }
  CHECK_FAILS(Call("broadcast_to", "broadcast_to").x("x", {2, 3}).ints("shape", {3}), value,
              "x of shape (2, 3) does not broadcast to (3,)");
  CHECK_FAILS(Call("broadcast_to", "broadcast_to").x("x", {2, 3}).ints("shape", {4, 3}), value,
              "does not broadcast");
  CHECK_FAILS(Call("broadcast_to", "broadcast_to").x("x", {1}).ints("shape", {-1}), value, "negative size");
  CHECK_FAILS(Call("broadcast_to", "broadcast_to").x("x", {1}).ints("shape", {1 << 30, 1 << 30}), value,
              "too large");
}

TEST(slice) {
  Buffer b;
  for (int round = 0; round < 2000; ++round) {
    const Tensor x = strided(b, random_shape(3, 6));
    Ints start, stop, step;
    for (int i = 0; i < x.rank(); ++i) {
      start.push_back(below(x.size(i) + 1));
      stop.push_back(start.back() + below(x.size(i) - start.back() + 1));
      step.push_back(below(10) == 0 ? INT64_MAX : 1 + below(4));
    }
    Call c("slice", "slice", "same");
    c.operand("x", x).ints("start", start).ints("stop", stop).ints("step", step);
    CHECK(view(c));
    std::vector<const int32_t*> expected;
    each(x.shape(), [&](const Ints& index) {
      for (size_t i = 0; i < index.size(); ++i)
        if (index[i] < start[i] || index[i] >= stop[i] || (index[i] - start[i]) % step[i]) return;
      expected.push_back(at(x, index));
    });
    CHECK(elements(c.outs[0]) == expected);
  }
  const auto refused = [](const Ints& start, const Ints& stop, const Ints& step, const char* text) {
    CHECK_FAILS(Call("slice", "slice").x("x", {4, 5}).ints("start", start).ints("stop", stop).ints("step", step),
                value, text);
  };
  refused({0}, {1}, {1}, "have 1, 1 and 1 ints: expected one for each of the 2 axes of x of shape (4, 5)");
  refused({0, 0}, {4, 6}, {1, 1},
          "start 0 and stop 6 on axis 1 of x of shape (4, 5): expected 0 <= start <= stop <= 5");
  refused({0, 3}, {4, 2}, {1, 1}, "expected 0 <= start <= stop");
  refused({-1, 0}, {4, 2}, {1, 1}, "start -1 and stop 4");
  refused({0, 0}, {4, 5}, {1, 0}, "step 0 on axis 1: expected at least 1");
}

TEST(set_slice) {
  const auto set = [](const Ints& updates) {
    Call c("set_slice", "set_slice");
    c.x("x", {4, 5}).x("updates", updates).ints("start", {1, 0}).ints("stop", {4, 5}).ints("step", {2, 1});
    return c.shape();
  };
  CHECK_EQ(set({2, 5}), "(4, 5)");
  CHECK_EQ(set({}), "(4, 5)");
  CHECK_EQ(set({2, 1}), "(4, 5)");
  CHECK_FAILS(Call("set_slice", "set_slice")
                  .x("x", {4})
                  .x("updates", {3})
                  .ints("start", {0})
                  .ints("stop", {4})
                  .ints("step", {2}),
              value, "updates of shape (3,) do not broadcast to the region of shape (2,)");
}

TEST(diagonal) {
  Buffer b;
  for (int round = 0; round < 500; ++round) {
    Ints shape = random_shape(2, 3);
    shape.push_back(below(5)), shape.push_back(below(5));
    const Tensor x = strided(b, shape);
    const int64_t offset = round % 50 == 0 ? INT64_MIN : round % 50 == 1 ? INT64_MAX : below(13) - 6;
    Call c("diagonal", "diagonal", "same");
    c.operand("x", x).i64("offset", offset);
    CHECK(view(c));
    std::vector<const int32_t*> expected;
    each(x.shape(), [&](const Ints& index) {
      if (index[index.size() - 1] - index[index.size() - 2] == offset) expected.push_back(at(x, index));
    });
    CHECK(elements(c.outs[0]) == expected);
    CHECK_EQ(c.outs[0].rank(), x.rank() - 1);
  }
  CHECK_FAILS(Call("diagonal", "diagonal").x("x", {3}).i64("offset", 0), value, "expected at least 2");
}

TEST(bitcast) {
  Buffer b;
  const Tensor x = strided(b, {2, 3, 4});
  Call c("bitcast", "bitcast", "given");
  c.operand("x", x).dtype(DType::f32);
  CHECK(view(c));
  CHECK(c.outs[0].dtype == DType::f32 && elements(c.outs[0]) == elements(x));
  Call parts("bitcast", "bitcast", "given");
  parts.operand("x", x).dtype(DType::i16);
  CHECK(view(parts));
  CHECK_EQ(to_string(parts.outs[0].shape()), "(2, 3, 4, 2)");
  for (int i = 0; i < 3; ++i) CHECK(parts.outs[0].stride(i) == 2 * x.stride(i));
  CHECK(parts.outs[0].stride(3) == 1);
  Call whole("bitcast", "bitcast", "given");
  whole.operand("x", parts.outs[0]).dtype(DType::f32);
  CHECK(view(whole) && whole.outs[0].same_shape(x) && elements(whole.outs[0]) == elements(x));
  CHECK_FAILS(Call("bitcast", "bitcast", "given").x("x", {3}).dtype(DType::f64), value,
              "[bitcast] x of shape (3,) as float64: expected a last axis of 2, the parts of an element");
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
