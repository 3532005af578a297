// The rules of scaled_dot_product_attention: query (..., heads, L, E), key (..., kv heads, S, E), value (..., S,
// Ev); of its form with dropout and a second output, (..., L), and the gradient of that; and of its form for packed
// sequences: query (L, heads, E), key (S, kv heads, E), value (S, kv heads, Ev). And those of attention_scores,
// score_indices and block_attention, of four axes.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
namespace {
enum { query, key, value, kv_length = 4, cu_seq_q = 3, cu_seq_k, out = 3, logsumexp, grad };
enum { blocks = 3, tiles, scores };
constexpr char groups_cure[] = "enable_gqa=True lets key heads serve several query heads";

void check_groups(const Inference& inv, int64_t heads, int64_t key_heads) {
  if (key_heads == 0 ? heads != 0 : heads % key_heads != 0)
    inv.fail(std::to_string(heads) + " query heads and " + std::to_string(key_heads) +
             " key heads: expected a multiple of the key heads");
}

// The axes before the last two agree; with enable_gqa each key head may serve several query heads. `last`: value,
// or key for an op without values.
void check_batch(const Inference& inv, int last = value) {
  const TensorType &q = inv.operand(query), &k = inv.operand(key), &v = inv.operand(last);
  const int heads = q.rank() - 3;
  const bool grouped = heads >= 0 && flag(inv, "enable_gqa");
  Shape batch;
  batch.append(k, 0, k.rank() - 2);
  if (grouped) batch.at[heads] = q.size(heads);
  for (int i = 0; i <= heads; ++i) {
    if (q.size(i) == batch.at[i] && v.size(i) == k.size(i)) continue;
    const char* const cure = i == heads ? groups_cure : "broadcast_to makes them equal";
    const std::string shapes =
        last == value ? ", " + to_string(k.shape()) + " and " + to_string(v.shape()) + " of query, key and value"
                      : " and " + to_string(k.shape()) + " of query and key";
    inv.fail("shapes " + to_string(q.shape()) + shapes + " do not match: expected equal sizes on axis " +
             std::to_string(i) + (q.size(i) == k.size(i) ? "" : "; ") + (q.size(i) == k.size(i) ? "" : cure));
  }
  if (grouped) check_groups(inv, q.size(heads), k.size(heads));
}

void check_mask(const Inference& inv, int mask, std::span<const int64_t> scores) {
  const TensorType& m = inv.operand(mask);
  if (m.dtype != DType::b8 && !is_float(m.dtype))
    inv.fail(ErrorKind::type, operand_name(inv, mask) + " is " + info(m.dtype).name +
                                  ": expected bool (True takes part) or a float (added to the scores); astype one");
  if (!broadcasts_to(m.shape(), scores))
    inv.fail(described(inv, mask) + " does not broadcast to the scores of shape " + to_string(scores));
}

// Only some ops of this family have the attribute.
void check_dropout(const Inference& inv, int dropout_key) {
  const int a = find_attr(inv, "dropout_p");
  if (a < 0) return;
  const double p = inv.attrs.f64(a);
  if (!(p >= 0 && p <= 1)) inv.fail("dropout_p: expected 0 to 1, got " + to_string(p));
  if (p > 0 && !inv.has(dropout_key))
    inv.fail("dropout_p without dropout_key: expected the key of a draw, as dovetail.random.key() gives it");
  if (inv.has(dropout_key)) expect_key(inv, dropout_key);
}

// The fifth operand of the op of this family that has no dropout.
void check_kv_length(const Inference& inv) {
  if (find_attr(inv, "dropout_p") >= 0 || !inv.has(kv_length)) return;
  const TensorType& n = inv.operand(kv_length);
  if (n.rank() == 0) return;
  const TensorType& q = inv.operand(query);
  if (n.rank() > 1 || q.rank() < 3 || n.size(0) != q.size(0))
    inv.fail(described(inv, kv_length) + " does not fit " + described(inv, query) + ": expected no axis" +
             (q.rank() < 3 ? "" : ", or one of " + std::to_string(q.size(0)) + ", the batch"));
}

void check_head_sizes(const Inference& inv, int64_t size, int64_t key_size) {
  if (size != key_size)
    inv.fail("query's head size " + std::to_string(size) + " and key's " + std::to_string(key_size) +
             " differ: expected the last axes to be equal");
}

void check_values(const Inference& inv, int64_t keys, int64_t values, const char* axes) {
  if (keys != values)
    inv.fail(std::to_string(keys) + " keys and " + std::to_string(values) + " values: expected their " + axes +
             " axes to be equal");
}

void set_scale(Inference& inv, int64_t size) {
  if (const int a = attr(inv, "scale"); !inv.attrs.given(a))
    set_f64(inv, a, size ? 1 / std::sqrt(double(size)) : 1.0);
}

void check_offsets(const Inference& inv) {
  for (const int i : {int{cu_seq_q}, int{cu_seq_k}}) {
    if (const DType t = inv.operand(i).dtype; t != DType::i32 && t != DType::i64)
      inv.fail(ErrorKind::type, operand_name(inv, i) + " is " + info(t).name +
                                    ": expected int32 or int64, where sequences begin and the last one ends");
    expect_rank(inv, i, 1, 1);
  }
  const int64_t n = inv.operand(cu_seq_q).size(0), m = inv.operand(cu_seq_k).size(0);
  if (n != m || !n)
    inv.fail("cu_seq_q of " + std::to_string(n) + " offsets and cu_seq_k of " + std::to_string(m) +
             ": expected as many, one more than there are sequences");
}

// The table of blocks and the masks that it refers to.
void check_blocks(const Inference& inv) {
  if (inv.has(blocks) != inv.has(tiles)) inv.fail("got only one of blocks and tiles: expected both or none");
  if (!inv.has(blocks)) return;
  const auto expect_dtype = [&](int i, DType t) {
    if (const DType got = inv.operand(i).dtype; got != t)
      inv.fail(ErrorKind::type, operand_name(inv, i) + " is " + info(got).name + ": expected " + info(t).name);
  };
  expect_dtype(blocks, DType::i32), expect_dtype(tiles, DType::b8);
  expect_rank(inv, blocks, 4, 4), expect_rank(inv, tiles, 3, 3);
  const TensorType &b = inv.operand(blocks), &t = inv.operand(tiles);
  if (!t.size(0) || !t.size(1) || !t.size(2))
    inv.fail(described(inv, tiles) + " has no masks: expected at least one, of at least one row and column");
  const auto counted = [](int64_t n, int64_t size) { return n / size + (n % size != 0); };
  const int64_t rows = counted(inv.operand(query).size(2), t.size(1)),
                columns = counted(inv.operand(key).size(2), t.size(2));
  for (int i = 0; i < 4; ++i) {
    const int64_t most = i < 2 ? inv.operand(query).size(i) : i == 2 ? rows : columns;
    if (b.size(i) == most || (i < 2 && b.size(i) == 1)) continue;
    inv.fail(described(inv, blocks) + " does not fit " + described(inv, query) + " and " + described(inv, key) +
             " in blocks of " + std::to_string(t.size(1)) + " by " + std::to_string(t.size(2)) + ": expected " +
             std::to_string(most) + (i < 2 && most != 1 ? " or 1" : "") + " on axis " + std::to_string(i));
  }
}

// Checks the operands, of which the mask and the operand behind it are at `mask`, and the attributes; the shape of
// the result.
Shape attend(Inference& inv, int mask) {
  expect_rank(inv, query, 2);
  const TensorType &q = inv.operand(query), &k = inv.operand(key), &v = inv.operand(value);
  const int rank = q.rank();
  expect_rank(inv, key, rank, rank);
  expect_rank(inv, value, rank, rank);
  check_batch(inv);
  const int64_t head = q.size(rank - 1), n_keys = k.size(rank - 2);
  check_head_sizes(inv, head, k.size(rank - 1));
  check_values(inv, n_keys, v.size(rank - 2), "second last");
  Shape shape(q.shape());
  if (inv.has(mask)) {
    shape.at[rank - 1] = n_keys;
    check_mask(inv, mask, shape);
  }
  check_dropout(inv, mask + 1);
  set_scale(inv, head);
  shape.at[rank - 1] = v.size(rank - 1);
  const uint64_t rows = head ? q.numel / uint64_t(head) : 0;
  inv.work = rows * uint64_t(n_keys) * uint64_t(head + v.size(rank - 1));
  return shape;
}
}  // namespace

void shape_attention(Inference& inv) {
  const Shape shape = attend(inv, 3);
  check_kv_length(inv);
  inv.output(0, shape);
  if (inv.op.spec.n_out > 1) inv.output(1, std::span<const int64_t>(shape).first(size_t(shape.rank - 1)));
}

void shape_attention_grad(Inference& inv) {
  const Shape shape = attend(inv, 6);
  for (const int i : {int{out}, int{grad}}) expect_shape(inv, i, shape, "that of attention's result");
  expect_shape(inv, logsumexp, std::span<const int64_t>(shape).first(size_t(shape.rank - 1)), "one for each query");
  if (const DType t = inv.operand(logsumexp).dtype; !is_float(t))
    inv.fail(ErrorKind::type, operand_name(inv, logsumexp) + " is " + info(t).name + ": expected a real float");
  for (const int i : {int{query}, int{key}, int{value}}) inv.output(i, inv.operand(i).shape());
  inv.work *= 3;
}

void shape_attention_varlen(Inference& inv) {
  for (const int i : {int{query}, int{key}, int{value}}) expect_rank(inv, i, 3, 3);
  const TensorType &q = inv.operand(query), &k = inv.operand(key), &v = inv.operand(value);
  if (flag(inv, "enable_gqa")) check_groups(inv, q.size(1), k.size(1));
  else if (q.size(1) != k.size(1))
    inv.fail(std::to_string(q.size(1)) + " query heads and " + std::to_string(k.size(1)) +
             " key heads: expected as many; " + groups_cure);
  if (k.size(1) != v.size(1))
    inv.fail(std::to_string(k.size(1)) + " key heads and " + std::to_string(v.size(1)) +
             " value heads: expected as many");
  check_head_sizes(inv, q.size(2), k.size(2));
  check_values(inv, k.size(0), v.size(0), "first");
  check_offsets(inv);
  set_scale(inv, q.size(2));
  inv.output(0, std::array{q.size(0), q.size(1), v.size(2)});
  const int64_t sequences = std::max<int64_t>(inv.operand(cu_seq_q).size(0) - 1, 1);
  inv.work = uint64_t(q.size(0) * q.size(1)) * uint64_t(k.size(0)) * uint64_t(q.size(2) + v.size(2)) /
             uint64_t(sequences);  // assumes sequences of equal length
}

void shape_attention_scores(Inference& inv) {
  expect_rank(inv, query, 4, 4), expect_rank(inv, key, 4, 4);
  const TensorType &q = inv.operand(query), &k = inv.operand(key);
  check_batch(inv, key);
  check_head_sizes(inv, q.size(3), k.size(3));
  set_scale(inv, q.size(3));
  inv.output(0, std::array{q.size(0), q.size(1), q.size(2), k.size(2)});
  inv.work = q.numel * uint64_t(k.size(2));
}

void shape_score_indices(Inference& inv) {
  expect_rank(inv, query, 4, 4), expect_rank(inv, key, 4, 4);
  const TensorType& q = inv.operand(query);
  const int64_t n_keys = inv.operand(key).size(2);
  inv.output(0, std::array<int64_t, 4>{q.size(0), 1, 1, 1});
  inv.output(1, std::array<int64_t, 3>{q.size(1), 1, 1});
  inv.output(2, std::array<int64_t, 2>{q.size(2), 1});
  inv.output(3, std::array{n_keys});
  inv.work = uint64_t(q.size(0) + q.size(1) + q.size(2) + n_keys);
}

void shape_block_attention(Inference& inv) {
  for (const int i : {int{query}, int{key}, int{value}}) expect_rank(inv, i, 4, 4);
  const TensorType &q = inv.operand(query), &k = inv.operand(key), &v = inv.operand(value);
  check_batch(inv);
  check_head_sizes(inv, q.size(3), k.size(3));
  check_values(inv, k.size(2), v.size(2), "second last");
  check_blocks(inv);
  const std::array<int64_t, 4> shape{q.size(0), q.size(1), q.size(2), k.size(2)};
  if (inv.has(scores)) {
    expect_shape(inv, scores, shape, "one for each query and key");
    if (const DType t = inv.operand(scores).dtype; !is_float(t))
      inv.fail(ErrorKind::type, operand_name(inv, scores) + " is " + info(t).name + ": expected a real float");
  }
  set_scale(inv, q.size(3));
  inv.output(0, std::array{shape[0], shape[1], shape[2], v.size(3)});
  inv.output(1, std::array{shape[0], shape[1], shape[2]});
  inv.work = uint64_t(shape[0] * shape[1] * shape[2]) * uint64_t(shape[3]) * uint64_t(q.size(3) + v.size(3));
}
}  // namespace dovetail::rules
