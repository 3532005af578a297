// Groups of attention whose scores elementwise nodes change: attention_scores, those nodes, block_attention. They
// run as the kernel of attention, which has the nodes run on each block of scores while that is in a core's caches.
#pragma once
#include <vector>

#include "compile/group.hpp"
#include "score_tiles.hpp"

namespace dovetail::cpu {
struct ScoredAttention {
  Group changes;                 // of a block of scores: its index space has the symbols 0 to 3
  bool any = false;              // changes
  std::vector<uint32_t> inputs;  // of `changes`: which inputs of the call, `nowhere` for the scores
  uint32_t query = nowhere, key = nowhere, value = nowhere, blocks = nowhere, tiles = nowhere;  // inputs
  uint32_t out = nowhere, logsumexp = nowhere;                                                  // outputs
  dvt_attr scale{};
  BlockAttention kernel = nullptr;
};

// The nodes of each such group in a program of any nodes.
std::vector<std::vector<uint32_t>> find_scored_attention(const Table&, const LoopTable&, const dvt_program&);

bool has_attention(const dvt_program&);
// nullptr, or why the program is no such group.
const char* translate(const Table&, const LoopTable&, const dvt_program&, ScoredAttention& out);

// Inputs that must be compact and are not, a bit for each.
uint64_t need_compact(const ScoredAttention&, const dvt_exe_call&);
dvt_status run(const ScoredAttention&, const Conversions&, const GeneratedFunction* functions, const dvt_exe_call&);
}  // namespace dovetail::cpu
