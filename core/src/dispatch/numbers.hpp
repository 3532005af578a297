// Operands that are numbers and not arrays: the dtype that they take, and whether it can hold them.
#pragma once
#include <optional>
#include <string>

#include "dispatch/invocation.hpp"
#include "rules/rules.hpp"

namespace dovetail {
// The dtype that the arrays of a call give to its numbers.
class NumberDType {
 public:
  explicit NumberDType(const Op& op) : op_(op) {}
  void add_array(int operand, DType t) {
    if (is_value(operand)) like_ = like_ == DType::none ? t : promote(like_, t).value_or(like_);
  }
  // After the last add_array(). `own`: the dtype of such a number alone.
  DType of(int operand, DType own) const {
    const DType like = is_value(operand) ? rules::dtype_of_numbers(op_, like_) : DType::none;
    return like == DType::none ? own : rules::weak_dtype(like, own);
  }

 private:
  bool is_value(int operand) const { return op_.operand_kinds[op_.variadic ? 0 : operand] == ParamKind::value; }
  const Op& op_;
  DType like_ = DType::none;
};

// An integer as its two's complement. Where it does not fit in 64 bits, only `text` has its value.
struct Integer {
  uint64_t bits = 0;
  bool negative = false;
  bool wider = false;  // than 64 bits, or below the least int64
  std::string text{};  // for messages; empty: made from the value
};
// Weak host scalars. They throw Error(overflow), which names `function`, where the dtype cannot hold the value.
Tensor number_of(const Integer&, DType integer_dtype, const char* function);
Tensor number_of(double, DType float_dtype, const char* function, const std::string& text = {});
Tensor complex_number_of(double real, double imaginary, DType complex_dtype);
Tensor bool_number_of(bool);

// Whether arrays of any device take this one as an operand: one without axes on a device of kind cpu.
bool joins_any_device(const Tensor&);
// Its value. Waits for the device, whose memory the host can read.
Tensor as_host_scalar(const Tensor& array);

// The op that stands for this one where all operands are bool, as True + True is True in NumPy; or nullptr.
const Op* op_for_bools(const Op&);
}  // namespace dovetail
