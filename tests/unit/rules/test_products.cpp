// matmul, linear, vecdot, outer, attention, norms, cross_entropy.
#include <cmath>
#include <optional>

#include "call.hpp"

namespace dovetail {
namespace {
std::optional<Ints> matmul(Ints a, Ints b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a[a.size() - 1] != b[b.size() - 2]) return std::nullopt;
  const int64_t m = a[a.size() - 2], n = b.back();
  a.resize(a.size() - 2), b.resize(b.size() - 2);
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1), b.insert(b.begin(), rank - b.size(), 1);
  Ints out;
  for (size_t i = 0; i < rank; ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return std::nullopt;
    out.push_back(a[i] == 1 ? b[i] : a[i]);
  }
  if (!row) out.push_back(m);
  if (!column) out.push_back(n);
  return out;
}

TEST(matmul_of_all_small_shapes) {
  std::vector<Ints> shapes{{}};
  for (size_t first = 0, n = 1, rank = 0; rank < 4; ++rank, first = n, n = shapes.size())
    for (size_t i = first; i < n; ++i)
      for (const int64_t s : {0, 1, 2}) {
        shapes.push_back(shapes[i]);
        shapes.back().push_back(s);
      }
  for (const Ints& a : shapes)
    for (const Ints& b : shapes) {
      Call c("matmul", "matmul");
      c.x("x1", a).x("x2", b);
      if (const auto expected = matmul(a, b)) {
        CHECK_SHAPE(c, to_string(*expected));
        CHECK_EQ(c.work, c.outs[0].numel * uint64_t(a.back()));
      } else {
        CHECK_FAILS(c, value, "[matmul] ");
      }
    }
}

TEST(matmul_failures) {
  CHECK_FAILS(Call("matmul", "matmul").x("x1", {2, 3}).x("x2", {4, 5}), value,
              "[matmul] shapes (2, 3) and (4, 5) do not match: expected x1's last axis 3 to equal x2's first 4");
  CHECK_FAILS(Call("matmul", "matmul").x("x1", {2, 3}).x("x2", {7, 4, 5}), value,
              "expected x1's last axis 3 to equal x2's second last 4");
  CHECK_FAILS(Call("matmul", "matmul").x("x1", {2, 2, 3}).x("x2", {3, 3, 5}), value,
              "expected the axes before the last two to broadcast");
  CHECK_FAILS(Call("matmul", "matmul").x("x1", {2, 3}).x("x2", {}), value, "x2 is 0-d");
}

TEST(matmul_integer) {
  const auto op = [] { return Call("matmul_integer", "matmul_integer", "int32"); };
  const auto product = [](Call&& c, const Ints& a, const Ints& b, DType t = DType::u8) -> Call& {
    return c.x("x1", a, t, ParamKind::raw).x("x2", b, DType::i8, ParamKind::raw);
  };
  const auto zeros = [&](Call&& c, const Ints& of_a, const Ints& of_b, DType t = DType::u8) -> Call& {
    return product(std::move(c), {4, 2, 3}, {3, 5})
        .x("x1_zero_point", of_a, t, ParamKind::raw)
        .x("x2_zero_point", of_b, DType::i8, ParamKind::raw);
  };
  CHECK_SHAPE(product(op(), {4, 2, 3}, {3, 5}), "(4, 2, 5)");
  CHECK_SHAPE(zeros(op(), {}, {}), "(4, 2, 5)");
  CHECK_SHAPE(zeros(op(), {1}, {1}), "(4, 2, 5)");
  CHECK_SHAPE(zeros(op(), {2}, {5}), "(4, 2, 5)");
  CHECK_FAILS(zeros(op(), {3}, {}), value, "expected shape (2,), one value for each row of x1, or one for all");
  CHECK_FAILS(zeros(op(), {}, {3}), value, "expected shape (5,), one value for each column of x2, or one for all");
  CHECK_FAILS(zeros(op(), {2, 1}, {}), value, "x1_zero_point of shape (2, 1) does not fit");
  CHECK_FAILS(zeros(op(), {}, {}, DType::i8), type, "x1_zero_point is int8: expected uint8, the dtype of x1");
  CHECK_FAILS(product(op(), {2, 3}, {3, 5}, DType::f32), type, "x1 is float32: expected int8 or uint8");
  CHECK_FAILS(product(op(), {2, 3}, {4, 5}), value, "expected x1's last axis 3 to equal x2's first 4");
}

TEST(linear_scaled_linear_vecdot_outer) {
  Call linear("linear", "linear");
  linear.x("x", {4, 5, 3}).x("weight", {7, 3}).x("bias", {7});
  CHECK_SHAPE(linear, "(4, 5, 7)");
  CHECK_EQ(linear.work, 4u * 5 * 7 * 3);
  CHECK_SHAPE(Call("linear", "linear").x("x", {3}).x("weight", {7, 3}).absent("bias"), "(7,)");
  CHECK_FAILS(Call("linear", "linear").x("x", {4, 5}).x("weight", {7, 3}), value,
              "expected x's last axis 5 to equal");
  CHECK_FAILS(Call("linear", "linear").x("x", {4, 3}).x("weight", {7, 3}).x("bias", {3}), value,
              "bias of shape (3,) does not fit: expected shape (7,)");
  CHECK_FAILS(Call("linear", "linear").x("x", {}).x("weight", {7, 3}), value, "x of shape () has 0 axes");

  const auto scaled = [](Call&& c, const Ints& x_scale, const Ints& weight_scale, DType t = DType::f8e4m3fn) {
    c.x("x", {4, 5, 3}, t, ParamKind::raw).x("weight", {7, 3}, DType::i8, ParamKind::raw);
    return std::ref(c.x("x_scale", x_scale).x("weight_scale", weight_scale).absent("bias", ParamKind::raw));
  };
  const auto op = [] { return Call("scaled_linear", "scaled_linear", "scaled"); };
  CHECK_SHAPE(scaled(op(), {}, {1}).get().dtype(DType::bf16), "(4, 5, 7)");
  CHECK_SHAPE(scaled(op(), {4, 5}, {7}).get().dtype(DType::none), "(4, 5, 7)");
  CHECK_FAILS(scaled(op(), {5}, {}).get().dtype(DType::none), value, "x_scale of shape (5,) does not fit");
  CHECK_FAILS(scaled(op(), {}, {3}).get().dtype(DType::none), value,
              "expected shape (7,), one value for each row of weight");
  CHECK_SHAPE(scaled(op(), {4, 5, 1}, {1, 1}).get().dtype(DType::none), "(4, 5, 7)");
  CHECK_FAILS(scaled(op(), {4, 1}, {}).get().dtype(DType::none), value, "expected shape (4, 5)");
  CHECK_FAILS(scaled(op(), {}, {}, DType::f16).get().dtype(DType::none), type,
              "x is float16: expected int8, float8");
  CHECK_FAILS(scaled(op(), {}, {}).get().dtype(DType::i8), type,
              "dtype int8 is not supported: expected a real float");

  Call dot("vecdot", "vecdot");
  dot.x("x1", {4, 1, 3}).x("x2", {5, 3}).i64("axis", -1);
  CHECK_SHAPE(dot, "(4, 5)");
  CHECK_EQ(dot.value("axis"), 2);
  Call middle("vecdot", "vecdot");
  middle.x("x1", {3, 4}).x("x2", {2, 3, 1}).i64("axis", -2);
  CHECK_SHAPE(middle, "(2, 4)");
  CHECK_EQ(middle.value("axis"), 1);
  CHECK_FAILS(Call("vecdot", "vecdot").x("x1", {3}).x("x2", {1}).i64("axis", -1), value,
              "expected x1's axis -1 of 3 to equal x2's 1");
  CHECK_FAILS(Call("vecdot", "vecdot").x("x1", {3}).x("x2", {2, 3}).i64("axis", -2), axis,
              "axis -2 is out of range for x1 of shape (3,): expected -1 to -1");
  CHECK_FAILS(Call("vecdot", "vecdot").x("x1", {2, 3}).x("x2", {4, 3}).i64("axis", -1), value, "axes to broadcast");
  CHECK_FAILS(Call("vecdot", "vecdot").x("x1", {}).x("x2", {}).i64("axis", -1), axis, "expected no axis");

  CHECK_SHAPE(Call("outer", "outer").x("x1", {3}).x("x2", {0}), "(3, 0)");
  CHECK_FAILS(Call("outer", "outer").x("x1", {3}).x("x2", {2, 2}), value,
              "x2 of shape (2, 2) has 2 axes: expected 1");
}

struct Sdpa : Call {
  Sdpa(const Ints& q, const Ints& k, const Ints& v, const std::optional<Ints>& mask = {},
       DType mask_type = DType::b8, bool gqa = false)
      : Call("scaled_dot_product_attention", "attention", "float") {
    x("query", q).x("key", k).x("value", v);
    if (mask) x("attn_mask", *mask, mask_type, ParamKind::raw);
    else absent("attn_mask", ParamKind::raw);
    flag("is_causal", false).none("scale", ParamKind::f64).flag("enable_gqa", gqa);
  }
};

TEST(attention) {
  Sdpa plain({2, 4, 5, 16}, {2, 4, 7, 16}, {2, 4, 7, 8});
  CHECK_SHAPE(plain, "(2, 4, 5, 8)");
  CHECK_EQ(plain.real("scale"), 0.25);
  CHECK_EQ(plain.work, 2u * 4 * 5 * 7 * (16 + 8));
  CHECK_SHAPE(Sdpa({5, 16}, {7, 16}, {7, 8}), "(5, 8)");
  CHECK_SHAPE(Sdpa({2, 4, 5, 16}, {2, 2, 7, 16}, {2, 2, 7, 8}, {}, DType::b8, true), "(2, 4, 5, 8)");
  CHECK_SHAPE(Sdpa({2, 4, 5, 16}, {2, 4, 7, 16}, {2, 4, 7, 8}, Ints{5, 7}), "(2, 4, 5, 8)");
  CHECK_SHAPE(Sdpa({2, 4, 5, 16}, {2, 4, 7, 16}, {2, 4, 7, 8}, Ints{2, 1, 1, 7}, DType::f16), "(2, 4, 5, 8)");
  CHECK_SHAPE(Sdpa({2, 0, 5, 0}, {2, 0, 0, 0}, {2, 0, 0, 8}), "(2, 0, 5, 8)");
  CHECK_FAILS(Sdpa({2, 4, 5, 16}, {2, 4, 7, 16}, {2, 4, 7, 8}, Ints{7, 7}), value,
              "attn_mask of shape (7, 7) does not broadcast to the scores of shape (2, 4, 5, 7)");
  CHECK_FAILS(Sdpa({2, 4, 5, 16}, {2, 4, 7, 16}, {2, 4, 7, 8}, Ints{5, 7}, DType::i32), type, "attn_mask is int32");
  CHECK_FAILS(Sdpa({2, 4, 5, 16}, {2, 2, 7, 16}, {2, 2, 7, 8}), value, "enable_gqa=True");
  CHECK_FAILS(Sdpa({2, 4, 5, 16}, {2, 3, 7, 16}, {2, 3, 7, 8}, {}, DType::b8, true), value,
              "4 query heads and 3 key heads: expected a multiple");
  CHECK_FAILS(Sdpa({2, 4, 5, 16}, {1, 4, 7, 16}, {1, 4, 7, 8}), value, "equal sizes on axis 0; broadcast_to");
  CHECK_FAILS(Sdpa({4, 5, 16}, {4, 7, 16}, {3, 7, 16}), value, "equal sizes on axis 0");
  CHECK_FAILS(Sdpa({5, 16}, {7, 8}, {7, 8}), value, "query's head size 16 and key's 8 differ");
  CHECK_FAILS(Sdpa({5, 16}, {7, 16}, {6, 8}), value, "7 keys and 6 values");
  CHECK_FAILS(Sdpa({5, 16}, {1, 7, 16}, {7, 8}), value, "key of shape (1, 7, 16) has 3 axes: expected 2");
}

struct SdpaWithLogsumexp : Call {
  SdpaWithLogsumexp(double p, const std::optional<Ints>& dropout_key, DType key_type = DType::u32)
      : Call("scaled_dot_product_attention_with_logsumexp", "attention", "float") {
    op.spec.n_out = 2;
    x("query", {2, 4, 5, 16}).x("key", {2, 4, 7, 16}).x("value", {2, 4, 7, 8}).absent("attn_mask", ParamKind::raw);
    if (dropout_key) x("dropout_key", *dropout_key, key_type, ParamKind::raw);
    else absent("dropout_key", ParamKind::raw);
    flag("is_causal", false).none("scale", ParamKind::f64).flag("enable_gqa", false).f64("dropout_p", p);
  }
};

TEST(attention_with_logsumexp) {
  SdpaWithLogsumexp plain(0, {});
  CHECK_SHAPE(plain, "(2, 4, 5, 8)");
  CHECK_EQ(to_string(plain.outs[1].shape()), "(2, 4, 5)");
  CHECK_SHAPE(SdpaWithLogsumexp(0, Ints{4}), "(2, 4, 5, 8)");
  CHECK_SHAPE(SdpaWithLogsumexp(1, Ints{4}), "(2, 4, 5, 8)");
  CHECK_FAILS(SdpaWithLogsumexp(0.5, {}), value, "dropout_p without dropout_key: expected the key of a draw");
  CHECK_FAILS(SdpaWithLogsumexp(1.5, Ints{4}), value, "dropout_p: expected 0 to 1, got 1.5");
  CHECK_FAILS(SdpaWithLogsumexp(-0.5, Ints{4}), value, "dropout_p: expected 0 to 1, got -0.5");
  CHECK_FAILS(SdpaWithLogsumexp(NAN, Ints{4}), value, "dropout_p: expected 0 to 1, got");
  CHECK_FAILS(SdpaWithLogsumexp(0.5, Ints{4}, DType::i32), type, "dropout_key is int32: expected uint32");
  CHECK_FAILS(SdpaWithLogsumexp(0.5, Ints{2}), value, "dropout_key of shape (2,)");
}

struct SdpaVarlen : Call {
  SdpaVarlen(const Ints& q, const Ints& k, const Ints& v, const Ints& offsets_q, const Ints& offsets_k,
             bool gqa = false, DType type = DType::i32)
      : Call("scaled_dot_product_attention_varlen", "attention_varlen", "float") {
    x("query", q).x("key", k).x("value", v);
    x("cu_seq_q", offsets_q, DType::i64, ParamKind::raw).x("cu_seq_k", offsets_k, type, ParamKind::raw);
    flag("is_causal", false).none("scale", ParamKind::f64).flag("enable_gqa", gqa);
  }
};

TEST(attention_varlen) {
  SdpaVarlen plain({50, 4, 16}, {70, 4, 16}, {70, 4, 8}, {6}, {6});
  CHECK_SHAPE(plain, "(50, 4, 8)");
  CHECK_EQ(plain.real("scale"), 0.25);
  CHECK_EQ(plain.work, 50u * 4 * 70 * (16 + 8) / 5);
  CHECK_SHAPE(SdpaVarlen({5, 4, 16}, {7, 2, 16}, {7, 2, 8}, {1}, {1}, true), "(5, 4, 8)");
  CHECK_SHAPE(SdpaVarlen({0, 0, 0}, {0, 0, 0}, {0, 0, 8}, {2}, {2}, true, DType::i64), "(0, 0, 8)");
  CHECK_FAILS(SdpaVarlen({5, 16}, {7, 16}, {7, 8}, {2}, {2}), value,
              "query of shape (5, 16) has 2 axes: expected 3");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 2, 16}, {7, 2, 8}, {2}, {2}), value,
              "4 query heads and 2 key heads: expected as many; enable_gqa=True");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 3, 16}, {7, 3, 8}, {2}, {2}, true), value, "expected a multiple");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 16}, {7, 2, 8}, {2}, {2}), value, "4 key heads and 2 value heads");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 8}, {7, 4, 8}, {2}, {2}), value, "query's head size 16 and key's 8");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 16}, {6, 4, 8}, {2}, {2}), value,
              "7 keys and 6 values: expected their first axes");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 16}, {7, 4, 8}, {2}, {3}), value,
              "cu_seq_q of 2 offsets and cu_seq_k of 3: expected as many, one more than there are sequences");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 16}, {7, 4, 8}, {0}, {0}), value, "cu_seq_q of 0 offsets");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 16}, {7, 4, 8}, {2}, {1, 2}), value, "cu_seq_k of shape (1, 2)");
  CHECK_FAILS(SdpaVarlen({5, 4, 16}, {7, 4, 16}, {7, 4, 8}, {2}, {2}, false, DType::u32), type,
              "cu_seq_k is uint32: expected int32 or int64");
}

struct AttentionScores : Call {
  AttentionScores(const Ints& q, const Ints& k, bool gqa = false)
      : Call("attention_scores", "attention_scores", "float") {
    x("query", q).x("key", k).none("scale", ParamKind::f64).flag("enable_gqa", gqa);
  }
};

TEST(attention_scores) {
  AttentionScores plain({2, 4, 5, 16}, {2, 4, 7, 16});
  CHECK_SHAPE(plain, "(2, 4, 5, 7)");
  CHECK_EQ(plain.real("scale"), 0.25);
  CHECK_EQ(plain.work, 2u * 4 * 5 * 7 * 16);
  CHECK_SHAPE(AttentionScores({2, 4, 5, 16}, {2, 2, 7, 16}, true), "(2, 4, 5, 7)");
  CHECK_FAILS(AttentionScores({5, 16}, {7, 16}), value, "query of shape (5, 16) has 2 axes: expected 4");
  CHECK_FAILS(AttentionScores({2, 4, 5, 16}, {2, 2, 7, 16}), value,
              "(2, 4, 5, 16) and (2, 2, 7, 16) of query and key do not match: expected equal sizes on axis 1; "
              "enable_gqa=True");
  CHECK_FAILS(AttentionScores({2, 4, 5, 16}, {2, 4, 7, 8}), value, "query's head size 16 and key's 8 differ");
}

TEST(score_indices) {
  Call made("score_indices", "score_indices", "int32");
  made.op.spec.n_out = 4;
  made.x("query", {2, 4, 5, 16}).x("key", {2, 2, 7, 16});
  CHECK_SHAPE(made, "(2, 1, 1, 1)");
  CHECK_EQ(to_string(made.outs[1].shape()), "(4, 1, 1)");
  CHECK_EQ(to_string(made.outs[2].shape()), "(5, 1)");
  CHECK_EQ(to_string(made.outs[3].shape()), "(7,)");
  CHECK_FAILS(Call("score_indices", "score_indices", "int32").x("query", {5, 7}).x("key", {5, 7}), value,
              "query of shape (5, 7) has 2 axes: expected 4");
}

struct BlockAttention : Call {
  BlockAttention(const std::optional<Ints>& blocks, const std::optional<Ints>& tiles,
                 const std::optional<Ints>& scores = {}, DType blocks_type = DType::i32)
      : Call("block_attention", "block_attention", "float") {
    op.spec.n_out = 2;
    x("query", {2, 4, 50, 16}).x("key", {2, 4, 70, 16}).x("value", {2, 4, 70, 8});
    const auto optional = [&](const char* name, const std::optional<Ints>& shape, DType type) {
      if (shape) x(name, *shape, type, ParamKind::raw);
      else absent(name, ParamKind::raw);
    };
    optional("blocks", blocks, blocks_type), optional("tiles", tiles, DType::b8);
    optional("scores", scores, DType::f32);
    none("scale", ParamKind::f64).flag("enable_gqa", false);
  }
};

TEST(block_attention) {
  BlockAttention plain({}, {});
  CHECK_SHAPE(plain, "(2, 4, 50, 8)");
  CHECK_EQ(to_string(plain.outs[1].shape()), "(2, 4, 50)");
  CHECK_EQ(plain.work, 2u * 4 * 50 * 70 * (16 + 8));
  CHECK_SHAPE(BlockAttention(Ints{1, 1, 4, 3}, Ints{1, 16, 32}), "(2, 4, 50, 8)");
  CHECK_SHAPE(BlockAttention(Ints{2, 4, 1, 1}, Ints{5, 50, 70}, Ints{2, 4, 50, 70}), "(2, 4, 50, 8)");
  CHECK_FAILS(BlockAttention(Ints{1, 1, 4, 3}, {}), value, "only one of blocks and tiles: expected both or none");
  CHECK_FAILS(BlockAttention(Ints{1, 1, 3, 3}, Ints{1, 16, 32}), value,
              "in blocks of 16 by 32: expected 4 on axis 2");
  CHECK_FAILS(BlockAttention(Ints{1, 3, 4, 3}, Ints{1, 16, 32}), value, "expected 4 or 1 on axis 1");
  CHECK_FAILS(BlockAttention(Ints{1, 1, 4, 3}, Ints{0, 16, 32}), value, "has no masks: expected at least one");
  CHECK_FAILS(BlockAttention(Ints{1, 1, 4, 3}, Ints{1, 16, 32}, {}, DType::i64), type,
              "blocks is int64: expected int32");
  CHECK_FAILS(BlockAttention({}, {}, Ints{2, 4, 50, 50}), value, "scores of shape (2, 4, 50, 50) does not fit");
}

TEST(norms) {
  Call norm("layer_norm", "layer_norm", "float");
  norm.x("x", {2, 3, 4}).ints("normalized_shape", {3, 4}).x("weight", {3, 4}).absent("bias").f64("eps", 1e-5);
  CHECK_SHAPE(norm, "(2, 3, 4)");
  CHECK_EQ(norm.real("eps"), 1e-5);
  const std::pair<DType, double> eps[] = {{DType::f16, std::ldexp(1, -10)},
                                          {DType::bf16, std::ldexp(1, -7)},
                                          {DType::f64, std::ldexp(1, -52)},
                                          {DType::f32, std::ldexp(1, -23)},
                                          {DType::i32, std::ldexp(1, -23)}};
  for (const auto& [t, expected] : eps) {
    Call rms("rms_norm", "layer_norm", "float");
    rms.x("x", {2, 4}, t).i64("normalized_shape", 4).absent("weight").none("eps", ParamKind::f64);
    CHECK_SHAPE(rms, "(2, 4)");
    CHECK_EQ(rms.real("eps"), expected);
  }
  CHECK_FAILS(Call("layer_norm", "layer_norm").x("x", {2, 4}).ints("normalized_shape", {2}).f64("eps", 1), value,
              "normalized_shape (2,): expected the last axes of x of shape (2, 4)");
  CHECK_FAILS(Call("layer_norm", "layer_norm").x("x", {4}).ints("normalized_shape", {4, 4}).f64("eps", 1), value,
              "normalized_shape (4, 4)");
  CHECK_FAILS(Call("layer_norm", "layer_norm").x("x", {4}).ints("normalized_shape", {}).f64("eps", 1), value,
              "normalized_shape ()");
  CHECK_FAILS(Call("n", "layer_norm").x("x", {2, 4}).ints("normalized_shape", {4}).x("w", {2}).f64("eps", 1), value,
              "w of shape (2,) does not fit: expected shape (4,)");

  CHECK_SHAPE(Call("batch_norm", "batch_norm")
                  .x("x", {2, 3, 4})
                  .x("running_mean", {3})
                  .x("v", {3})
                  .absent("weight")
                  .f64("eps", 1),
              "(2, 3, 4)");
  CHECK_FAILS(Call("batch_norm", "batch_norm").x("x", {2, 3}).x("mean", {2}).f64("eps", 1), value,
              "mean of shape (2,) does not fit: expected shape (3,), one value for each channel");
  CHECK_FAILS(Call("batch_norm", "batch_norm").x("x", {2}).f64("eps", 1), value, "expected at least 2");
}

struct Rotary : Call {
  Rotary(const Ints& values, const Ints& cos, const Ints& sin)
      : Call("rotary_embedding", "rotary_embedding", "float") {
    x("x", values).x("cos", cos).x("sin", sin).flag("interleaved", false);
  }
};

TEST(rotary_embedding) {
  CHECK_SHAPE(Rotary({2, 3, 5, 8}, {5, 4}, {5, 4}), "(2, 3, 5, 8)");
  CHECK_SHAPE(Rotary({2, 3, 5, 9}, {2, 1, 5, 4}, {2, 1, 5, 4}), "(2, 3, 5, 9)");
  CHECK_SHAPE(Rotary({8}, {1}, {1}), "(8,)");
  CHECK_SHAPE(Rotary({0, 5, 8}, {5, 4}, {5, 4}), "(0, 5, 8)");
  CHECK_FAILS(Rotary({5, 8}, {5, 8}, {5, 8}), value, "has 8 angles: expected 1 to 4, one for each pair");
  CHECK_FAILS(Rotary({5, 8}, {5, 0}, {5, 0}), value, "has 0 angles: expected 1 to 4");
  CHECK_FAILS(Rotary({5, 8}, {4, 4}, {4, 4}), value, "cos of shape (4, 4) does not broadcast to (5, 4)");
  CHECK_FAILS(Rotary({5, 8}, {2, 5, 4}, {2, 5, 4}), value, "cos of shape (2, 5, 4) has 3 axes: expected 1 to 2");
  CHECK_FAILS(Rotary({5, 8}, {5, 4}, {5, 2}), value, "sin of shape (5, 2) does not fit: expected shape (5, 4)");
  CHECK_FAILS(Rotary({}, {4}, {4}), value, "x of shape () has 0 axes: expected at least 1");
}

struct Quantize : Call {
  Quantize(const Ints& values, const Ints& scale) : Call("quantize", "quantize", "float") {
    x("x", values).x("scale", scale);
  }
};

TEST(quantize) {
  constexpr ParamKind whole = ParamKind::i64;
  CHECK_SHAPE(Quantize({2, 3}, {}).none("axis", whole), "(2, 3)");
  CHECK_SHAPE(Quantize({2, 3}, {1}).index("zero_point", {}).none("axis", whole), "(2, 3)");
  CHECK_SHAPE(Quantize({2, 3}, {3}).index("zero_point", {3}).i64("axis", -1), "(2, 3)");
  CHECK_SHAPE(Quantize({2, 3}, {2}).index("zero_point", {1}).i64("axis", 0), "(2, 3)");
  CHECK_FAILS(Quantize({2, 3}, {3}).none("axis", whole), value, "expected one value for all of x; axis= names");
  CHECK_FAILS(Quantize({2, 3}, {1, 1}).none("axis", whole), value, "expected one value for all of x; axis= names");
  CHECK_FAILS(Quantize({2, 3}, {}).i64("axis", 1), value, "scale of shape () does not fit: expected shape (3,)");
  CHECK_FAILS(Quantize({2, 3}, {2}).i64("axis", 1), value, "one value for each index of x's axis 1");
  CHECK_FAILS(Quantize({2, 3}, {3}).i64("axis", 2), axis, "axis 2 is out of range");
  CHECK_FAILS(Quantize({2, 3}, {3}).index("zero_point", {2}).i64("axis", 1), value, "zero_point of shape (2,)");
  CHECK_FAILS(Quantize({2, 3}, {}).index("zero_point", {3}).none("axis", whole), value, "that of scale, or one");

  for (const DType t : {DType::i8, DType::u8, DType::i4, DType::u2, DType::i32, DType::f32}) {
    Call c("dequantize", "dequantize", "float");
    c.x("x", {2}, t, ParamKind::raw).x("scale", {}).none("axis", whole);
    if (t != DType::i32 && t != DType::f32) CHECK_SHAPE(c, "(2,)");
    else CHECK_FAILS(c, type, "expected int8, uint8, int4, uint4, int2 or uint2, as quantize gives them");
  }
}

TEST(cross_entropy) {
  CHECK_SHAPE(Call("ce", "cross_entropy").x("x", {5, 3}).index("target", {5}).str("reduction", "mean"), "()");
  CHECK_SHAPE(Call("ce", "cross_entropy").x("x", {5, 3, 7}).index("target", {5, 7}).str("reduction", "none"),
              "(5, 7)");
  CHECK_SHAPE(Call("ce", "cross_entropy").x("x", {3}).index("target", {}).str("reduction", "sum"), "()");
  CHECK_FAILS(Call("ce", "cross_entropy").x("x", {5, 3}).index("target", {3}).str("reduction", "sum"), value,
              "target of shape (3,) does not fit: expected shape (5,), x's without the classes on axis 1");
  CHECK_FAILS(Call("ce", "cross_entropy").x("x", {5, 3}).index("target", {5}).str("reduction", "avg"), value,
              "reduction 'avg': expected 'none', 'mean' or 'sum'");
  CHECK_FAILS(Call("ce", "cross_entropy").x("x", {5, 0}).index("target", {5}).str("reduction", "sum"), value,
              "no classes");
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
