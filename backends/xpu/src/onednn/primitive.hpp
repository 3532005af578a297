// A primitive as it was built for a description, with the reorders around it.
#pragma once
#include <optional>

#include "onednn.hpp"
#include "onednn/library.hpp"

namespace gpu::onednn {
// A oneDNN primitive, and the scratch memory that the caller provides.
struct Step {
  PrimitiveHandle primitive;
  MemoryDesc scratch;
  size_t scratch_bytes = 0;

  explicit operator bool() const { return bool(primitive); }
};

// An operand as the call has it, and as the primitive has it.
struct Side {
  MemoryDesc given, used;
  Step reorder;      // from one to the other; empty where they are the same
  size_t place = 0;  // in the workspace, of what the primitive has
};

struct Packing {
  uint64_t size, layout;  // bytes, and a number that stands for the layout
};

class Primitive {
 public:
  Side in, weights, bias, out;
  Step step;
  size_t scratch_place = 0, workspace = 0;  // the weights' place is the last
  std::optional<Packing> packing;           // of the weights
};

// nullptr where oneDNN has no more than a reference implementation.
PrimitiveRef build(dnnl_engine_t, const Description&);
}  // namespace gpu::onednn
