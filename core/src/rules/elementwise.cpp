// Rules of elementwise ops: same, broadcast.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
void shape_same(Inference& inv) { inv.work = inv.output(0, inv.operand(0).shape()).numel; }

// If several shapes do not broadcast together, some two of them do not.
[[gnu::cold, noreturn]] static void no_broadcast(const Inference& inv) {
  int64_t merged[DVT_MAX_NDIM];
  int rank;
  for (int j = 1; j < inv.n_in; ++j)
    for (int i = 0; i < j; ++i) {
      if (!inv.in[i] || !inv.in[j]) continue;
      const TensorType &a = inv.operand(i), &b = inv.operand(j);
      if (broadcast_shapes(a.shape(), b.shape(), merged, &rank)) continue;
      int back = 1;
      while (a.size(a.rank() - back) == b.size(b.rank() - back) || a.size(a.rank() - back) == 1 ||
             b.size(b.rank() - back) == 1)
        ++back;
      inv.fail("shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) + " do not broadcast: expected " +
               operand_name(inv, i) + "'s axis " + std::to_string(-back) + " of " +
               std::to_string(a.size(a.rank() - back)) + " to equal " + operand_name(inv, j) + "'s " +
               std::to_string(b.size(b.rank() - back)) + ", or one of them to be 1");
    }
  inv.fail("shapes do not broadcast");
}

void shape_broadcast(Inference& inv) {
  const TensorType* widest = inv.in[0];
  bool plain = true;  // every operand has the widest one's shape or is 0-d
  for (int i = 1; i < inv.n_in; ++i) {
    const TensorType* t = inv.in[i];
    if (!t) continue;
    if (!widest) {
      widest = t;
      continue;
    }
    if (t->rank() == 0 || t->same_shape(*widest)) continue;
    plain &= widest->rank() == 0;
    if (t->rank() > widest->rank()) widest = t;
  }
  if (plain) [[likely]] {
    inv.work = inv.output(0, widest->shape()).numel;
    return;
  }
  int64_t shape[DVT_MAX_NDIM];
  int rank = 0;
  for (int i = 0; i < inv.n_in; ++i)
    if (inv.in[i] && !broadcast_shapes({shape, size_t(rank)}, inv.in[i]->shape(), shape, &rank)) no_broadcast(inv);
  inv.work = inv.output(0, {shape, size_t(rank)}).numel;
}
}  // namespace dovetail::rules
