// Rules of ops that gather, join, enlarge or create.
#include <cmath>
#include <limits>

#include "call.hpp"

namespace dovetail {
namespace {
TEST(take) {
  for (const Ints& indices : {Ints{}, Ints{2}, Ints{2, 3}, Ints{0}})
    for (int axis = -3; axis < 3; ++axis) {
      Call c("take", "take", "same");
      c.x("x", {4, 5, 6}).index("indices", indices).i64("axis", axis);
      Ints expected{4, 5, 6};
      const int at = axis < 0 ? axis + 3 : axis;
      expected.erase(expected.begin() + at);
      expected.insert(expected.begin() + at, indices.begin(), indices.end());
      CHECK_SHAPE(c, to_string(expected));
      CHECK_EQ(c.value("axis"), at);
    }
  Call flat("take", "take", "same");
  flat.x("x", {4}).index("indices", {2, 2}).none("axis");
  CHECK_SHAPE(flat, "(2, 2)");
  CHECK_EQ(flat.value("axis"), 0);
  CHECK_FAILS(Call("take", "take").x("x", {4, 5}).index("indices", {2}).none("axis"), value, "axis is needed");
  CHECK_FAILS(Call("take", "take").x("x", {0}).index("indices", {2}).i64("axis", 0), index,
              "[take] indices into axis 0 of size 0: x of shape (0,)");
  CHECK_SHAPE(Call("take", "take").x("x", {0}).index("indices", {0}).i64("axis", 0), "(0,)");
  CHECK_FAILS(Call("take", "take").x("x", Ints(9, 1)).index("indices", Ints(9, 1)).i64("axis", 0), value,
              "17 axes");
  CHECK_FAILS(Call("take", "take").x("x", Ints(16, 1)).index("indices", Ints(16, 1)).i64("axis", 0), value,
              "31 axes");
}

TEST(take_along_axis_scatter_embedding_one_hot) {
  Call along("take_along_axis", "take_along_axis", "same");
  along.x("x", {4, 1, 6}).index("indices", {1, 5, 9}).i64("axis", -1);
  CHECK_SHAPE(along, "(4, 5, 9)");
  CHECK_EQ(along.value("axis"), 2);
  CHECK_FAILS(Call("t", "take_along_axis").x("x", {4, 6}).index("indices", {3, 2}).i64("axis", 1), value,
              "shapes (4, 6) and (3, 2) do not match on axis 0");
  CHECK_FAILS(Call("t", "take_along_axis").x("x", {4, 6}).index("indices", {3}).i64("axis", 1), value,
              "indices of shape (3,) has 1 axis: expected 2");
  CHECK_FAILS(Call("t", "take_along_axis").x("x", {4, 0}).index("indices", {4, 1}).i64("axis", 1), index, "size 0");

  CHECK_SHAPE(Call("scatter", "scatter").x("x", {4, 5}).index("i", {3}).x("updates", {4, 3}).i64("axis", 1),
              "(4, 5)");
  CHECK_SHAPE(Call("scatter", "scatter").x("x", {4, 5}).index("i", {3}).x("updates", {}).i64("axis", 1), "(4, 5)");
  CHECK_FAILS(
      Call("scatter", "scatter").x("x", {4, 5}).index("i", {3}).x("updates", {4, 2}).i64("axis", 1), value,
      "updates of shape (4, 2) do not broadcast to the 3 slices of x of shape (4, 5) on axis 1: expected (4, 3)");
  CHECK_FAILS(Call("scatter", "scatter").x("x", {4}).index("i", {2, 2}).x("updates", {}).i64("axis", 0), value,
              "i of shape (2, 2) has 2 axes: expected 1");

  CHECK_SHAPE(Call("s", "scatter_middle").x("x", {2, 5, 3}).index("i", {4}).x("updates", {4, 1}), "(2, 5, 3)");
  CHECK_FAILS(Call("s", "scatter_middle").x("x", {2, 5, 3}).index("i", {4}).x("updates", {2, 5, 3}), value,
              "expected (2, 4, 3)");
  CHECK_FAILS(Call("s", "scatter_middle").x("x", {5, 3}).index("i", {4}).x("updates", {}), value,
              "x of shape (5, 3) has 2 axes: expected 3");

  Call joined("scatter", "scatter");
  CHECK_SHAPE(joined.x("x", {4}).index("i", {3}).x("updates", {3}).i64("axis", 0).str("mode", "max"), "(4,)");
  Call unknown("scatter", "scatter");
  CHECK_FAILS(unknown.x("x", {4}).index("i", {3}).x("updates", {3}).i64("axis", 0).str("mode", "mean"), value,
              "mode: expected 'set', 'add', 'max', 'min' or 'multiply', got 'mean'");

  CHECK_SHAPE(Call("s", "segment_sum").x("x", {6, 2}).index("ids", {6}).i64("num_segments", 0), "(0, 2)");
  CHECK_FAILS(Call("s", "segment_sum").x("x", {6, 2}).index("ids", {5}).i64("num_segments", 3), value,
              "ids of shape (5,) does not fit: expected shape (6,), one id for each slice of x's first axis");
  CHECK_FAILS(Call("s", "segment_sum").x("x", {6}).index("ids", {6}).i64("num_segments", -1), value,
              "num_segments: expected at least 0, got -1");

  CHECK_SHAPE(Call("embedding", "embedding", "same").index("x", {2, 7}).x("weight", {100, 16}), "(2, 7, 16)");
  CHECK_FAILS(Call("embedding", "embedding", "same").index("x", {2}).x("weight", {0, 16}), index,
              "weight of shape (0, 16)");
  CHECK_SHAPE(Call("one_hot", "one_hot", "index").index("x", {2, 3}).i64("num_classes", 4), "(2, 3, 4)");
  CHECK_FAILS(Call("one_hot", "one_hot", "index").index("x", {2}).i64("num_classes", 0), value,
              "num_classes: expected at least 1, got 0");
}

TEST(dynamic_slices) {
  Call along("d", "dynamic_slice_axis");
  CHECK_SHAPE(along.x("x", {2, 9, 3}).index("start", {1}).i64("size", 4).i64("axis", -2), "(2, 4, 3)");
  CHECK_EQ(along.value("axis"), 1);
  CHECK_FAILS(Call("d", "dynamic_slice_axis").x("x", {9}).index("start", {1}).i64("size", 10).i64("axis", 0), value,
              "size 10 on axis 0 of x of shape (9,): expected 0 to 9");
  CHECK_FAILS(Call("d", "dynamic_slice_axis").x("x", {9}).index("start", {2}).i64("size", 1).i64("axis", 0), value,
              "start of shape (2,) does not fit: expected shape (1,), the start");

  Call one("d", "dynamic_slice");
  CHECK_SHAPE(one.x("x", {2, 9, 3}).index("starts", {}).ints("sizes", {4}).ints("axis", {-2}), "(2, 4, 3)");
  CHECK_EQ(one.list("axis"), "(1,)");
  CHECK_SHAPE(Call("d", "dynamic_slice").x("x", {2, 9}).index("starts", {2}).ints("sizes", {1, 0}).none("axis"),
              "(1, 0)");
  CHECK_SHAPE(
      Call("d", "dynamic_slice").x("x", {2, 9}).index("starts", {2}).ints("sizes", {3, 1}).ints("axis", {1, 0}),
      "(1, 3)");
  CHECK_FAILS(Call("d", "dynamic_slice").x("x", {2, 9}).index("starts", {}).ints("sizes", {1, 1}).none("axis"),
              value, "starts of shape () do not fit: expected a vector of 2 starts, one per axis");
  CHECK_FAILS(Call("d", "dynamic_slice").x("x", {2, 9}).index("starts", {2}).ints("sizes", {1}).none("axis"), value,
              "sizes has 1 ints: expected 2, one per start");
  CHECK_FAILS(Call("d", "dynamic_slice").x("x", {2, 9}).index("starts", {2}).ints("sizes", {3, 1}).none("axis"),
              value, "size 3 on axis 0 of x of shape (2, 9): expected 0 to 2");
  CHECK_FAILS(
      Call("d", "dynamic_slice").x("x", {2, 9}).index("starts", {2}).ints("sizes", {1, 1}).ints("axis", {1, -1}),
      value, "axis names axis 1 twice");

  const char* update = "dynamic_update_slice";
  CHECK_SHAPE(Call("u", update).x("x", {2, 9}).x("update", {2, 4}).index("starts", {1}).ints("axis", {1}),
              "(2, 9)");
  CHECK_FAILS(Call("u", update).x("x", {2, 9}).x("update", {1, 4}).index("starts", {1}).ints("axis", {1}), value,
              "update of shape (1, 4) does not fit into x of shape (2, 9): expected 2 on axis 0");
  CHECK_FAILS(Call("u", update).x("x", {2, 9}).x("update", {2, 10}).index("starts", {2}).none("axis"), value,
              "expected at most 9 on axis 1");
  CHECK_FAILS(Call("u", update).x("x", {2, 9}).x("update", {9}).index("starts", {2}).none("axis"), value,
              "update of shape (9,) has 1 axis: expected 2");
}

TEST(concat_and_stack) {
  CHECK_FAILS(Call("concat", "concat").variadic("arrays", {}).i64("axis", 0), value, "[concat] no arrays");
  CHECK_FAILS(Call("stack", "stack").variadic("arrays", {}).i64("axis", 0), value,
              "no arrays: expected at least one");
  CHECK_SHAPE(Call("concat", "concat").variadic("arrays", {{2, 3}, {0, 3}, {5, 3}}).i64("axis", 0), "(7, 3)");
  CHECK_SHAPE(Call("concat", "concat").variadic("arrays", {{2, 3}, {2, 1}}).i64("axis", -1), "(2, 4)");
  CHECK_SHAPE(Call("concat", "concat").variadic("arrays", {{2, 3}, {}, {2}}).none("axis"), "(9,)");
  CHECK_FAILS(Call("concat", "concat").variadic("arrays", {{2, 3}, {2, 4}}).i64("axis", 0), value,
              "[concat] arrays[1] of shape (2, 4) does not fit: expected shape (2, 3)");
  CHECK_FAILS(Call("concat", "concat").variadic("arrays", {{2, 3}, {2}}).i64("axis", 0), value,
              "arrays[1] of shape (2,)");
  CHECK_FAILS(Call("concat", "concat").variadic("arrays", {{}, {}}).i64("axis", 0), value, "stack makes one");
  const Ints vast{int64_t{1} << 57, 0};
  CHECK_SHAPE(Call("concat", "concat").variadic("arrays", {vast, vast}).i64("axis", 0), "(288230376151711744, 0)");
  CHECK_FAILS(Call("concat", "concat").variadic("arrays", {vast, vast, vast}).i64("axis", 0), value, "too large");

  CHECK_SHAPE(Call("stack", "stack").variadic("arrays", {{2, 3}, {2, 3}}).i64("axis", 0), "(2, 2, 3)");
  Call last("stack", "stack");
  last.variadic("arrays", {{2, 3}, {2, 3}, {2, 3}}).i64("axis", -1);
  CHECK_SHAPE(last, "(2, 3, 3)");
  CHECK_EQ(last.value("axis"), 2);
  CHECK_SHAPE(Call("stack", "stack").variadic("arrays", {{}, {}}).i64("axis", 0), "(2,)");
  CHECK_FAILS(Call("stack", "stack").variadic("arrays", {{2}, {3}}).i64("axis", 0), value, "expected shape (2,)");
  CHECK_FAILS(Call("stack", "stack").variadic("arrays", {{2}}).i64("axis", 2), axis,
              "axis 2 is out of range: expected -2 to 1 for the result from arrays[0] of shape (2,)");
  CHECK_FAILS(Call("stack", "stack").variadic("arrays", {Ints(16, 1)}).i64("axis", 0), value, "17 axes");
}

TEST(repeat_tile_pad) {
  CHECK_SHAPE(Call("repeat", "repeat").x("x", {2, 3}).i64("repeats", 4).i64("axis", -1), "(2, 12)");
  CHECK_SHAPE(Call("repeat", "repeat").x("x", {2, 3}).i64("repeats", 0).i64("axis", 0), "(0, 3)");
  Call flat("repeat", "repeat");
  flat.x("x", {2, 3}).i64("repeats", 2).none("axis");
  CHECK_SHAPE(flat, "(12,)");
  CHECK(flat.is_none("axis"));
  CHECK_FAILS(Call("repeat", "repeat").x("x", {2}).i64("repeats", -1).i64("axis", 0), value,
              "repeats: expected at least 0");
  CHECK_FAILS(Call("repeat", "repeat").x("x", {4}).i64("repeats", INT64_MAX).i64("axis", 0), value,
              "axis 0 is too large");

  const auto tile = [](const Ints& x, const Ints& repetitions) {
    Call c("tile", "tile", "same");
    c.x("x", x).ints("repetitions", repetitions);
    const std::string shape = c.shape();
    return shape + c.list("repetitions");
  };
  CHECK_EQ(tile({2, 3}, {2}), "(2, 6)(1, 2)");
  CHECK_EQ(tile({3}, {2, 1, 2}), "(2, 1, 6)(2, 1, 2)");
  CHECK_EQ(tile({2, 3}, {}), "(2, 3)(1, 1)");
  CHECK_EQ(tile({}, {}), "()()");
  CHECK_EQ(tile({}, {3}), "(3,)(3,)");
  CHECK_EQ(tile({2, 3}, {0, 1}), "(0, 3)(0, 1)");
  CHECK_FAILS(Call("tile", "tile").x("x", {2}).ints("repetitions", {-1}), value,
              "repetitions: expected at least 0");
  CHECK_FAILS(Call("tile", "tile").x("x", {2}).ints("repetitions", Ints(17, 1)), value,
              "17 values: expected at most 16");

  const auto pad = [](const Ints& x, const Ints& widths) {
    Call c("pad", "pad", "same");
    c.x("x", x).ints("pad_width", widths);
    const std::string shape = c.shape();
    return shape + c.list("pad_width");
  };
  CHECK_EQ(pad({2, 3}, {1}), "(4, 5)(1, 1, 1, 1)");
  CHECK_EQ(pad({2, 3}, {1, 0}), "(3, 4)(1, 0, 1, 0)");
  CHECK_EQ(pad({2, 3}, {0, 1, 2, 3}), "(3, 8)(0, 1, 2, 3)");
  CHECK_EQ(pad({3}, {1, 2}), "(6,)(1, 2)");
  CHECK_EQ(pad({}, {1}), "()()");
  CHECK_EQ(pad({0}, {2}), "(4,)(2, 2)");
  CHECK_EQ(pad(Ints(16, 1), {0}).substr(0, 4), "(1, ");
  CHECK_FAILS(Call("pad", "pad").x("x", {2, 3}).ints("pad_width", {1, 2, 3}), value,
              "pad_width (1, 2, 3): expected 1, 2 or 4 ints");
  CHECK_FAILS(Call("pad", "pad").x("x", {2}).ints("pad_width", {-1}), value,
              "pad_width: expected at least 0, got -1");
  CHECK_FAILS(Call("pad", "pad").x("x", {2}).ints("pad_width", {INT64_MAX}), value, "axis 0 is too large");
}

dvt_attr i(int64_t v) { return {DVT_A_I64, 1, {.i = v}}; }
dvt_attr f(double v) { return {DVT_A_F64, 1, {.f = v}}; }
const dvt_attr nothing{DVT_A_NONE, 0, {.raw = 0}};

struct Arange : Call {
  Arange(dvt_attr start, dvt_attr stop = nothing, dvt_attr step = i(1)) : Call("arange", "arange", "given") {
    scalar("start", start).scalar("stop", stop).scalar("step", step).dtype(DType::none);
  }
};

TEST(arange) {
  for (int64_t start = -3; start <= 3; ++start)
    for (int64_t stop = -5; stop <= 5; ++stop)
      for (const int64_t step : {-3, -2, -1, 1, 2, 3}) {
        int64_t n = 0;
        for (int64_t v = start; step > 0 ? v < stop : v > stop; v += step) ++n;
        CHECK_SHAPE(Arange(i(start), i(stop), i(step)), to_string(Ints{n}));
        CHECK_SHAPE(Arange(f(double(start)), i(stop), i(step)), to_string(Ints{n}));
      }
  Arange one(i(5));
  CHECK_SHAPE(one, "(5,)");
  CHECK_EQ(one.value("start"), 0);
  CHECK_EQ(one.value("stop"), 5);
  CHECK_SHAPE(Arange(f(0.1), f(1), f(0.3)), "(3,)");
  CHECK_SHAPE(Arange(i(INT64_MIN), i(INT64_MAX), i(INT64_MAX)), "(3,)");
  CHECK_FAILS(Arange(i(INT64_MIN), i(INT64_MAX)), value, "too many values");
  CHECK_FAILS(Arange(i(int64_t{1} << 59)), value, "too large");
  CHECK_FAILS(Arange(f(0), f(1e300)), value, "too many values");
  CHECK_FAILS(Arange(i(0), i(4), i(0)), value, "[arange] step: expected a number other than 0");
  CHECK_FAILS(Arange(f(NAN)), value, "stop: expected a finite number");
  CHECK_FAILS(Arange(f(0), f(INFINITY)), value, "stop: expected a finite number");
  CHECK_FAILS(Arange({DVT_A_BOOL, 1, {.i = 1}}), type, "expected an int or a float");
}

TEST(iota_linspace_eye) {
  CHECK_SHAPE(Call("iota", "iota", "given").i64("size", 4).dtype(DType::i32), "(4,)");
  CHECK_FAILS(Call("iota", "iota", "given").i64("size", -1), value, "size: expected at least 0, got -1");
  CHECK_SHAPE(Call("linspace", "linspace", "given").f64("start", 0).f64("stop", 1).i64("num", 0), "(0,)");
  CHECK_FAILS(Call("linspace", "linspace", "given").i64("num", -1), value, "num: expected at least 0");
  Call eye("eye", "eye", "given");
  eye.i64("n_rows", 3).none("n_cols").i64("k", 0);
  CHECK_SHAPE(eye, "(3, 3)");
  CHECK_EQ(eye.value("n_cols"), 3);
  CHECK_SHAPE(Call("eye", "eye", "given").i64("n_rows", 3).i64("n_cols", 0), "(3, 0)");
  CHECK_FAILS(Call("eye", "eye", "given").i64("n_rows", -3).none("n_cols"), value, "n_rows: expected at least 0");
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
