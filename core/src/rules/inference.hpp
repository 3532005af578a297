// One call of an op as its rules see it: dtypes, shapes and attributes, no device and no memory.
#pragma once
#include "rules/op.hpp"

namespace dovetail {
struct Inference {
  // Also of lists of pointers to a class that TensorType is the first base of: no call copies its list.
  typedef const TensorType* Operand [[gnu::may_alias]];
  typedef TensorType* Output [[gnu::may_alias]];

  const Op& op;
  const Operand* in;  // n_in operands; nullptr: optional, not given
  int n_in;
  Attrs& attrs;          // shape rules normalise them: axes become non-negative, None becomes its meaning
  const DType* compute;  // by infer_dtypes(): in which the operands are computed
  const DType* result;   // by infer_dtypes(): per output
  const Output* out;     // fresh; filled by the shape rule
  uint64_t work = 0;     // elements or multiply-adds, by the shape rule

  const TensorType& operand(int i) const { return *in[i]; }
  bool has(int i) const { return i < n_in && in[i]; }
  TensorType& output(int i, std::span<const int64_t> shape);  // sets dense strides and dtype result[i]
  // Runs the op's shape rule. Outputs that it does not mention have the first one's shape.
  [[gnu::always_inline]] void infer_shapes() {  // no call more on the eager path
    op.shape(*this);
    for (uint32_t i = 1; i < op.spec.n_out; ++i)
      if (out[i]->dtype == DType::none) output(int(i), out[0]->shape());
  }
  [[noreturn]] void fail(ErrorKind, const std::string& why) const;  // prefixes "[op] "
  [[noreturn]] void fail(const std::string& why) const { fail(ErrorKind::value, why); }
};

// The dtype rule and the shape rule of one call on operands of any dtypes: fills in `out`, normalises `attrs` and
// returns the work.
uint64_t infer(const Op&, const TensorType* const* in, int n_in, Attrs& attrs, TensorType* const* out);

// What a dtype rule sees and decides.
struct DTypeQuery {
  const Op& op;
  int n_in;
  const DType* in;                                       // none: an optional operand not given
  DType given;                                           // the dtype attribute, none if absent
  DType* compute;                                        // to fill: per operand
  DType* result;                                         // to fill: per output
  [[noreturn]] void fail(const std::string& why) const;  // TypeError
};
}  // namespace dovetail
