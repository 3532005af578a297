// Calls whose operands are all constants of a program: they run once, on the program's own device, so that their
// results have its bits.
#pragma once
#include "graph/algebra.hpp"

namespace dovetail {
struct Device;

class Folding {
 public:
  explicit Folding(Device& device) : device_(device) {}

  void note_constant(int value, const Scalar& scalar) { scalars_[value] = scalar; }
  void note_array(int value, const HostArray& elements) { arrays_[value] = elements; }
  // The elements of the call's result; nothing where an operand is no constant, the result takes more than
  // kMostBytes, or the call raises an error, which is left to the program.
  std::optional<HostArray> run(const Algebra::Call&, const TensorType& result) const;

 private:
  static constexpr uint64_t kMostBytes = 1 << 20;
  bool knows(int value) const { return value < 0 || scalars_.contains(value) || arrays_.contains(value); }

  Device& device_;
  std::map<int, Scalar> scalars_;
  std::map<int, HostArray> arrays_;
};
}  // namespace dovetail
