// The inner loops of elementwise kernels and of reductions over rows, as data: kernels run over whole operands with
// them, the compiler's programs over tiles.
#pragma once
#include <cstdint>

#include "dovetail/abi.h"

namespace dovetail::cpu {
constexpr int max_elementwise_in = 3;

// out[i] = op(in[0][i * step[0]], ...) for i in [0, n). step is 1 (dense) or 0 (one value for all), never 0 for all
// operands at once; loops of a spec without `scalars` only see 1. out may be exactly one of the inputs.
using Loop = void (*)(const void* const* in, const int64_t* step, void* out, int64_t n);

// fp16 and bf16 in memory are float in the loop.
enum class Half : uint8_t { no, f16, bf16 };

struct Elementwise {
  Loop loop;
  uint8_t n_in;
  uint8_t in_bytes[max_elementwise_in];  // in memory
  uint8_t out_bytes;
  bool scalars = false;
  Half in_half = Half::no;  // of every input of 2 bytes
  Half out_half = Half::no;
  uint32_t grain = 32768;  // elements worth a thread
  // Of a loop on floats: gives the function that computes one of its vectors, which takes and returns vectors of
  // the level's own width in registers. For code that is generated; nullptr where there is none.
  const void* (*vector_function)() = nullptr;
  Loop stored = nullptr;  // the loop on fp16 and bf16 as they are in memory, for operands that need no gathering
};

// A reduction of contiguous terms; of fp16 and bf16 they are floats. Terms are joined in runs of at most
// `run_length`, the results of runs in pairs.
struct Reduction {
  static constexpr int64_t run_length = 1024;
  static constexpr size_t state_bytes = 384;

  // One run each: out[r] of the n terms from x + r * n on, n <= run_length.
  void (*rows)(const void* x, int64_t rows, int64_t n, void* out);
  // Any number of runs.
  void (*start)(void* state);
  void (*add)(void* state, const void* x, int64_t n);
  void (*join)(void* state, const void* partial);
  void (*partial)(void* state, void* out);               // for join
  void (*total)(void* state, int64_t terms, void* out);  // terms: of all runs

  // Results side by side, of rows of terms. Of a run of at most `rows_of_run` rows, row i belongs to chain i %
  // chains; chains are joined in pairs, runs in halves.
  struct Columns {
    static constexpr int64_t rows_of_run = 16;
    uint8_t bytes;   // of a partial result
    uint8_t chains;  // one, if the terms are fp16 or bf16 in memory
    void (*clear)(void* partials, int64_t n);
    // Dense rows of n terms, from row `first` of a run on; the chains' partial results lie `width` apart.
    void (*add)(void* partials, int64_t chains, int64_t width, const void* x, int64_t first, int64_t rows,
                int64_t n);
    void (*join)(void* left, const void* right, int64_t n);
    int64_t (*chunks)(int64_t n, int64_t terms);  // of the rows, each with partial results of its own
    // Of `chunks` times `columns` partial results those of n columns from `begin` on.
    void (*total)(const void* partials, int64_t chunks, int64_t columns, int64_t begin, int64_t n, int64_t terms,
                  void* out);
  } columns;
};

// Between memory and tiles.
struct Conversions {
  void (*widen_f16)(const void* in, float* out, int64_t n);
  void (*widen_bf16)(const void* in, float* out, int64_t n);
  void (*narrow_f16)(const float* in, void* out, int64_t n);
  void (*narrow_bf16)(const float* in, void* out, int64_t n);
};

// A loop or a reduction in the compiler's table. Types are those in memory, or dvt::any(bits) of those in a loop.
struct LoopRow {
  const char* op;
  const Elementwise* loop;
  const Reduction* reduction;  // of in[0]; as if fp16 and bf16 were float
  DLDataType in[max_elementwise_in], out;
  const char* text = nullptr;  // what the node's first attribute must be
  uint32_t absent = 0;         // bit i: the node's operand i is absent; `in` has the others
};
}  // namespace dovetail::cpu
