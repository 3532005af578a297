// The rule of scaled_dot_product_attention: query (..., heads, L, E), key (..., kv heads, S, E), value (..., S,
// Ev); and of its form that drops weights out and gives a second output, (..., L).
#include <cmath>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
namespace {
enum { query, key, value, mask, dropout_key };

// The axes before the last two agree; with enable_gqa each key head may serve several query heads.
void check_batch(const Invocation& inv) {
  const Tensor &q = inv.operand(query), &k = inv.operand(key), &v = inv.operand(value);
  const int heads = q.rank() - 3;
  const bool grouped = heads >= 0 && flag(inv, "enable_gqa");
  Shape batch;
  batch.append(k, 0, k.rank() - 2);
  if (grouped) batch.at[heads] = q.size(heads);
  for (int i = 0; i <= heads; ++i) {
    if (q.size(i) == batch.at[i] && v.size(i) == k.size(i)) continue;
    std::string cure = q.size(i) == k.size(i) ? ""
                       : i == heads           ? "; enable_gqa=True lets key heads serve several query heads"
                                              : "; broadcast_to makes them equal";
    inv.fail("shapes " + to_string(q.shape()) + ", " + to_string(k.shape()) + " and " + to_string(v.shape()) +
             " of query, key and value do not match: expected equal sizes on axis " + std::to_string(i) + cure);
  }
  if (!grouped) return;
  const int64_t n = q.size(heads), m = k.size(heads);
  if (m == 0 ? n != 0 : n % m != 0)
    inv.fail(std::to_string(n) + " query heads and " + std::to_string(m) +
             " key heads: expected a multiple of the key heads");
}

void check_mask(const Invocation& inv, std::span<const int64_t> scores) {
  const Tensor& m = inv.operand(mask);
  if (m.dtype != DType::b8 && !is_float(m.dtype))
    inv.fail(ErrorKind::type, operand_name(inv, mask) + " is " + info(m.dtype).name +
                                  ": expected bool (True takes part) or a float (added to the scores); astype one");
  if (!broadcasts_to(m.shape(), scores))
    inv.fail(described(inv, mask) + " does not broadcast to the scores of shape " + to_string(scores));
}
// Of ops that have it.
void check_dropout(const Invocation& inv) {
  const int a = find_attr(inv, "dropout_p");
  if (a < 0) return;
  const double p = inv.attrs.f64(a);
  if (!(p >= 0 && p <= 1)) inv.fail("dropout_p: expected 0 to 1, got " + std::to_string(p));
  if (p > 0 && !inv.has(dropout_key))
    inv.fail("dropout_p without dropout_key: expected the key of a draw, as dovetail.random.key() gives it");
  if (!inv.has(dropout_key)) return;
  if (const Tensor& drawn = inv.operand(dropout_key); drawn.dtype != DType::u32)
    inv.fail(ErrorKind::type, operand_name(inv, dropout_key) + " is " + info(drawn.dtype).name +
                                  ": expected uint32, as dovetail.random.key() gives it");
  const int64_t words[] = {4};
  expect_shape(inv, dropout_key, words, "a key's");
}
}  // namespace

void shape_attention(Invocation& inv) {
  expect_rank(inv, query, 2);
  const Tensor &q = inv.operand(query), &k = inv.operand(key), &v = inv.operand(value);
  const int rank = q.rank();
  expect_rank(inv, key, rank, rank);
  expect_rank(inv, value, rank, rank);
  check_batch(inv);
  const int64_t head = q.size(rank - 1), n_keys = k.size(rank - 2);
  if (head != k.size(rank - 1))
    inv.fail("query's head size " + std::to_string(head) + " and key's " + std::to_string(k.size(rank - 1)) +
             " differ: expected the last axes to be equal");
  if (n_keys != v.size(rank - 2))
    inv.fail(std::to_string(n_keys) + " keys and " + std::to_string(v.size(rank - 2)) +
             " values: expected their second last axes to be equal");
  Shape shape(q.shape());
  if (inv.has(mask)) {
    shape.at[rank - 1] = n_keys;
    check_mask(inv, shape);
  }
  check_dropout(inv);
  if (const int a = attr(inv, "scale"); !inv.attrs.given(a))
    set_f64(inv, a, head ? 1 / std::sqrt(double(head)) : 1.0);
  shape.at[rank - 1] = v.size(rank - 1);
  const uint64_t rows = head ? q.numel / uint64_t(head) : 0;
  inv.output(0, shape);
  if (inv.op.spec.n_out > 1) inv.output(1, q.shape().first(rank - 1));
  inv.work = rows * uint64_t(n_keys) * uint64_t(head + v.size(rank - 1));
}
}  // namespace dovetail::rules
