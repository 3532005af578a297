// Attention over blocks of scores, for its kernel and for groups of the compiler that change scores.
#pragma once
#include <cstdint>

#include "dovetail/abi.h"

namespace dovetail::cpu {
// Scores of queries [first, first + n) and keys [key, key + m) of one matrix, `row` elements apart.
struct ScoreTile {
  void* scores;
  int64_t row, batch, head, first, n, key, m;
};
// The operands of block_attention, of four axes.
struct BlockCall {
  const DLTensor *query, *key, *value;
  const DLTensor *blocks, *tiles;   // dense, or nullptr
  const DLTensor* scores;           // in place of the products, of the type that they have; nullptr: there are none
  const DLTensor *out, *logsumexp;  // logsumexp: or nullptr
  double scale;
  // Called by many threads, for scores that are not hidden and others in the same blocks; nullptr: they stay.
  void (*change)(void* context, const ScoreTile&) = nullptr;
  void* context = nullptr;
};
using BlockAttention = dvt_status (*)(const BlockCall&);
}  // namespace dovetail::cpu
