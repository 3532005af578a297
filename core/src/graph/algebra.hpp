// Calls that give, bit for bit, what something simpler gives: x * 1, -(-x), a cast back from a wider dtype, a
// permutation of a permutation, a reshape of a reshape. No rule looks at sizes, and no error is lost: a call that
// may raise one is left behind only for one that raises wherever it does.
#pragma once
#include <map>
#include <set>

#include "graph/program.hpp"

namespace dovetail {
class Algebra {
 public:
  struct Call {
    const Op* op;
    std::vector<int> in;
    Attrs attrs;
  };
  // `type(value)`: the dtype and number of axes of a value.
  explicit Algebra(std::function<const TensorType&(int value)> type) : type_(std::move(type)) {}

  void note_constant(int value, const Scalar& scalar) { constants_[value] = scalar; }
  void note_call(int out, const Call& call) { calls_[out] = call; }
  // Makes it a simpler call of the same result; false where it is the simplest. `covered`: nullptr, or where
  // nothing else uses operand 0, which it gets if that is left behind and may raise no error that this call does
  // not raise.
  bool simplify(Call&, std::set<int>* covered) const;
  // The value that it gives, whose dtype is `result`; -1: another one.
  int value_of(const Call&, DType result) const;

 private:
  const Call* maker(int value, const Op&) const;  // nullptr: another op made it
  bool is_scalar(int value, double) const;        // that constant, with the sign of its zero
  int without_identity(const Call&, DType result) const;
  int chosen_by_constant(const Call&, DType result) const;
  bool covers(const Call& outer, const Call& inner) const;

  std::function<const TensorType&(int value)> type_;
  std::map<int, Scalar> constants_;
  std::map<int, Call> calls_;
};
}  // namespace dovetail
