// reduce, arg_reduce and the rules along axes.
#include "call.hpp"

namespace dovetail {
namespace {
Ints reduced(const Ints& x, uint32_t mask, bool keep) {
  Ints out;
  for (size_t i = 0; i < x.size(); ++i)
    if (!(mask >> i & 1)) out.push_back(x[i]);
    else if (keep) out.push_back(1);
  return out;
}

TEST(reduce_over_every_set_of_axes) {
  for (const Ints& x : {Ints{}, Ints{3}, Ints{0}, Ints{2, 3}, Ints{2, 0}, Ints{2, 3, 4}, Ints{1, 2, 1, 3}}) {
    const int rank = int(x.size());
    for (uint32_t mask = 0; mask < 1u << rank; ++mask)
      for (const bool keep : {false, true})
        for (const bool negative : {false, true}) {
          Ints axes, sorted;
          for (int i = rank; i-- > 0;)  // in descending order: the rule sorts
            if (mask >> i & 1) axes.push_back(negative ? i - rank : i);
          for (int i = 0; i < rank; ++i)
            if (mask >> i & 1) sorted.push_back(i);
          Call c("sum", "reduce", "accum");
          c.x("x", x).ints("axis", axes).dtype(DType::none).flag("keepdims", keep);
          CHECK_SHAPE(c, to_string(reduced(x, mask, keep)));
          CHECK_EQ(c.list("axis"), to_string(sorted));
          CHECK_EQ(c.work, c.operands[0].numel);
        }
    for (const bool keep : {false, true}) {
      Call c("sum", "reduce", "accum");
      c.x("x", x).none("axis").dtype(DType::none).flag("keepdims", keep);
      CHECK_SHAPE(c, to_string(reduced(x, (1u << rank) - 1, keep)));
      CHECK_EQ(c.list("axis").size() > 2, rank > 0);
    }
  }
}

TEST(reduce_takes_an_int_and_any_order_of_parameters) {
  CHECK_SHAPE(Call("sum", "reduce").x("x", {2, 3}).i64("axis", -1).flag("keepdims", true), "(2, 1)");
  CHECK_SHAPE(Call("f", "reduce").x("x", {2, 3}).flag("keepdims", true).i64("axis", 0).f64("p", 2), "(1, 3)");
  CHECK_SHAPE(Call("f", "reduce").x("x", {2, 3}).i64("axis", 0), "(3,)");
  CHECK_FAILS(Call("f", "reduce").x("x", {2, 3}), runtime, "shape rule 'reduce' expects an attribute 'axis'");
  CHECK_FAILS(Call("f", "reduce").x("x", {2, 3}).f64("axis", 1), type,
              "axis: expected an int or a sequence of ints");
}

TEST(reduce_failures) {
  CHECK_FAILS(Call("sum", "reduce").x("x", {2, 3}).ints("axis", {2}), axis,
              "[sum] axis 2 is out of range: expected -2 to 1 for x of shape (2, 3)");
  CHECK_FAILS(Call("sum", "reduce").x("x", {2, 3}).ints("axis", {-3}), axis, "axis -3 is out of range");
  CHECK_FAILS(Call("sum", "reduce").x("x", {}).ints("axis", {0}), axis,
              "axis 0 is out of range: expected no axis for x of shape ()");
  CHECK_FAILS(Call("sum", "reduce").x("x", {2, 3}).ints("axis", {1, -1}), value, "axis (1, -1) names axis 1 twice");
  CHECK_FAILS(Call("sum", "reduce").x("x", {2}).ints("axis", Ints(40, 0)), value, "40 values: expected at most 32");
  // There is no maximum of zero elements, as in NumPy not even where the result is empty.
  CHECK_FAILS(Call("max", "reduce", "same").x("x", {0}).ints("axis", {0}), value,
              "[max] zero-size reduction: x of shape (0,) is empty along the reduced axes");
  CHECK_FAILS(Call("max", "reduce", "same").x("x", {2, 0}).ints("axis", {1}), value, "zero-size reduction");
  CHECK_FAILS(Call("max", "reduce", "same").x("x", {0, 0}).ints("axis", {0}), value, "zero-size reduction");
}

TEST(reduce_of_nothing) {
  CHECK_SHAPE(Call("max", "reduce", "same").x("x", {2, 0}).ints("axis", {0}), "(0,)");
  CHECK_SHAPE(Call("max", "reduce", "same").x("x", {0, 3}).ints("axis", {1}), "(0,)");
  CHECK_SHAPE(Call("max", "reduce", "same").x("x", {0, 0}).ints("axis", {}), "(0, 0)");
  CHECK_SHAPE(Call("sum", "reduce", "accum").x("x", {2, 0}).ints("axis", {1}), "(2,)");
  CHECK_SHAPE(Call("mean", "reduce", "float").x("x", {0}).none("axis"), "()");
  CHECK_SHAPE(Call("any", "reduce", "predicate").x("x", {0}, DType::b8).none("axis"), "()");
  CHECK_SHAPE(Call("argmax", "arg_reduce", "index").x("x", {2, 0}).i64("axis", 0), "(0,)");
  CHECK_FAILS(Call("argmax", "arg_reduce", "index").x("x", {2, 0}).i64("axis", 1), value, "zero-size reduction");
  CHECK_FAILS(Call("argmax", "arg_reduce", "index").x("x", {0, 0}).i64("axis", 0), value, "zero-size reduction");
  CHECK_FAILS(Call("argmax", "arg_reduce", "index").x("x", {0}).none("axis"), value, "zero-size reduction");
}

TEST(arg_reduce) {
  for (const bool keep : {false, true}) {
    Call one("argmax", "arg_reduce", "index"), all("argmax", "arg_reduce", "index");
    one.x("x", {2, 3, 4}).i64("axis", -2).flag("keepdims", keep);
    CHECK_SHAPE(one, keep ? "(2, 1, 4)" : "(2, 4)");
    CHECK_EQ(one.value("axis"), 1);
    all.x("x", {2, 3, 4}).none("axis").flag("keepdims", keep);
    CHECK_SHAPE(all, keep ? "(1, 1, 1)" : "()");
    CHECK(all.is_none("axis"));
  }
}

TEST(scan) {
  Call none("cumulative_sum", "scan", "accum");
  none.x("x", {4}).none("axis").dtype(DType::none).flag("include_initial", false);
  CHECK_SHAPE(none, "(4,)");
  CHECK_EQ(none.value("axis"), 0);
  CHECK_SHAPE(Call("s", "scan").x("x", {2, 3}).i64("axis", -1).flag("include_initial", true), "(2, 4)");
  CHECK_SHAPE(Call("s", "scan").x("x", {0}).i64("axis", 0).flag("include_initial", true), "(1,)");
  CHECK_FAILS(Call("s", "scan").x("x", {2, 3}).none("axis"), value, "axis is needed for x of shape (2, 3)");
  CHECK_FAILS(Call("s", "scan").x("x", {}).none("axis"), value, "axis is needed for x of shape ()");
  CHECK_FAILS(Call("s", "scan").x("x", {}).i64("axis", 0), axis, "expected no axis");
}

TEST(top_k) {
  struct Best : Call {
    explicit Best(int64_t k, const char* mode = "largest") : Call("top_k", "top_k", "same_and_index") {
      op.spec.n_out = 2;
      x("x", {2, 3}, DType::f16).i64("k", k).i64("axis", -1).str("mode", mode);
    }
  };
  Best two(2);
  CHECK_SHAPE(two, "(2, 2)");
  CHECK_EQ(to_string(two.outs[1].shape()), "(2, 2)");
  CHECK_EQ(two.value("axis"), 1);
  CHECK_FAILS(Best(4), value, "k: expected 0 to 3, the elements of x of shape (2, 3) along axis 1, got 4");
  CHECK_FAILS(Best(-1), value, "k");
  CHECK_FAILS(Best(1, "median"), value, "mode 'median': expected 'largest' or 'smallest'");
}

TEST(rules_of_the_middle_axis) {
  Call order("argsort_middle", "middle", "index"), product("prod_middle", "reduce_middle", "same");
  order.x("x", {2, 5, 3});
  CHECK_SHAPE(order, "(2, 5, 3)");
  product.x("x", {2, 5, 3});
  CHECK_SHAPE(product, "(2, 3)");
  CHECK_EQ(product.work, 30);
  for (const char* rule : {"middle", "reduce_middle"}) {
    CHECK_FAILS(Call("f", rule).x("x", {2, 3}), value, "[f] x of shape (2, 3) has 2 axes: expected 3");
    CHECK_FAILS(Call("f", rule).x("x", {2, 3, 4, 5}), value, "has 4 axes: expected 3");
  }
}

TEST(along_axis_flip_roll_matrix) {
  Call softmax("softmax", "along_axis", "float");
  softmax.x("x", {2, 3}).i64("axis", -1);
  CHECK_SHAPE(softmax, "(2, 3)");
  CHECK_EQ(softmax.value("axis"), 1);
  CHECK_FAILS(Call("softmax", "along_axis").x("x", {2, 3}).i64("axis", 2), axis, "axis 2 is out of range");

  Call flip("flip", "flip", "same"), all("flip", "flip", "same");
  flip.x("x", {2, 3, 4}).ints("axis", {-1, 0});
  CHECK_SHAPE(flip, "(2, 3, 4)");
  CHECK_EQ(flip.list("axis"), "(0, 2)");
  all.x("x", {2, 3, 4}).none("axis");
  CHECK_SHAPE(all, "(2, 3, 4)");
  CHECK_EQ(all.list("axis"), "(0, 1, 2)");

  const auto roll = [](const Ints& shift, const Ints& axis) {
    Call c("roll", "roll", "same");
    c.x("x", {2, 3}).ints("shift", shift).ints("axis", axis);
    CHECK_SHAPE(c, "(2, 3)");
    return c.list("shift") + c.list("axis");
  };
  CHECK_EQ(roll({1}, {-1, 0}), "(1, 1)(1, 0)");
  CHECK_EQ(roll({1, -2}, {1}), "(1, -2)(1, 1)");
  CHECK_EQ(roll({1, 2}, {0, 0}), "(1, 2)(0, 0)");
  Call flat("roll", "roll", "same");
  flat.x("x", {2, 3}).i64("shift", -7).none("axis");
  CHECK_SHAPE(flat, "(2, 3)");
  CHECK(flat.is_none("axis"));
  CHECK_EQ(flat.list("shift"), "(-7,)");
  CHECK_FAILS(Call("roll", "roll").x("x", {2}).ints("shift", {1, 2}).none("axis"), value,
              "shift (1, 2): expected 1 int");
  CHECK_FAILS(Call("roll", "roll").x("x", {2, 2}).ints("shift", {1, 2, 3}).ints("axis", {0, 1}), value,
              "axis (0, 1): expected one int or 3 ints, got 2");

  CHECK_SHAPE(Call("tril", "matrix", "same").x("x", {4, 2, 3}).i64("k", 0), "(4, 2, 3)");
  CHECK_FAILS(Call("tril", "matrix", "same").x("x", {3}).i64("k", 0), value,
              "x of shape (3,) has 1 axis: expected at least 2");
}

TEST(diff) {
  CHECK_SHAPE(Call("diff", "diff").x("x", {2, 5}).absent("prepend").absent("append").i64("axis", -1).i64("n", 1),
              "(2, 4)");
  CHECK_SHAPE(Call("diff", "diff").x("x", {2, 5}).absent("prepend").absent("append").i64("axis", 0).i64("n", 3),
              "(0, 5)");
  CHECK_SHAPE(Call("diff", "diff").x("x", {2, 5}).x("prepend", {2, 2}).x("append", {}).i64("axis", 1).i64("n", 2),
              "(2, 6)");
  CHECK_FAILS(Call("diff", "diff").x("x", {2, 5}).x("prepend", {3, 2}).i64("axis", 1).i64("n", 2), value,
              "prepend of shape (3, 2) does not fit: expected shape (2, 2)");
  CHECK_FAILS(Call("diff", "diff").x("x", {2, 5}).i64("axis", 1).i64("n", -1), value,
              "n: expected at least 0, got -1");
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
