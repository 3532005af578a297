// Products of matrices by cuBLASLt on one device, with the algorithms that were used last.
#pragma once
#include <mutex>
#include <optional>

#include "dovetail/abi.h"
#include "gpu/lru_cache.hpp"

namespace gpu::cublaslt {
// A matrix as it lies in memory: lines of contiguous elements.
struct Matrix {
  int64_t line;     // elements from one line to the next
  int64_t columns;  // are the lines its columns, not its rows?
  int64_t step;     // elements from one matrix of the batch to the next; 0: all of them have this one
};

// The function applied to the sums before they are rounded. gelu_tanh is cuBLASLt's GELU: the form with a tanh.
enum class Activation : uint16_t { none, gelu_tanh };

// Factors of the sums, in float32: one for each operand, or one for each row of a and each column of b.
enum class Scales : uint32_t { none, of_operands, of_rows };

// c = activation(a b scales + bias): (m, k) by (k, n), for each of a batch. c is row-major without gaps, the bias
// has n elements. The key of a cache, so it begins with `= {}`.
struct Product {
  int64_t m, n, k, batch;
  Matrix a, b;
  DLDataType a_type, b_type, c_type, bias_type;
  uint16_t has_bias;
  Activation activation;
  Scales scales;
  int64_t c_step;
  int64_t allows_tf32;  // of float32: may it be computed with 10 bits of mantissa?
  int64_t alignment;    // bytes of which the operands' addresses are multiples

  void set_type(DLDataType all) { a_type = b_type = c_type = bias_type = all; }
};
inline constexpr int64_t most_alignment = 256;  // of which algorithms make use
inline constexpr int bias_align_log2 = 4;       // what the bias always has

struct Addresses {
  const void *a, *b, *bias;
  void* c;
  const void *a_scale = nullptr, *b_scale = nullptr;
};

// The types that matmul may use cuBLASLt for. Not int8: cuBLASLt's results are int32 or saturated int8, but the
// schema's wrap in the operands' type.
inline bool serves(DLDataType t) { return t.code == DVT_FLOAT || t.code == DVT_BFLOAT || t.code == DVT_COMPLEX; }
// Its epilogues are for what tensor cores give.
inline bool adds_bias(DLDataType t) { return t.code != DVT_COMPLEX && t.bits < 64; }
// Is the library there, and a GPU that it can use?
bool is_available();
// Why no call can be served; nullptr where some can.
const char* unavailable();

class Engine {
 public:
  explicit Engine(int capability);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Bytes that the best algorithm wants. Nothing where there is none.
  std::optional<uint64_t> workspace(const Product&);
  // Enqueues it; false where no algorithm does with so little workspace. Throws std::runtime_error. From any
  // thread, safe in captures.
  bool run(const Product&, const Addresses&, void* workspace, uint64_t workspace_bytes, void* stream);

 private:
  struct Algorithm {
    uint64_t opaque[8];  // cublasLtMatmulAlgo_t
    uint64_t workspace;
    bool found;
  };
  struct Key {
    Product product;
    uint64_t most_workspace;
  };
  void* handle();
  Algorithm algorithm(const Product&, uint64_t most_workspace);

  const uint64_t most_workspace_;
  std::mutex mutex_;
  void* handle_ = nullptr;  // cublasLtHandle_t
  LruCache<Key, Algorithm> algorithms_;
};
}  // namespace gpu::cublaslt
