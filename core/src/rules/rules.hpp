// The named rules. A shape rule is a function of this folder, listed in rules.inc: it checks operands and
// attributes, normalises the attributes in place (idempotently), sets the outputs' shapes and estimates the work. A
// dtype rule decides in which dtype an op computes. Rules find attributes by name.
#pragma once
#include <string_view>

#include "rules/inference.hpp"

namespace dovetail::rules {
struct NamedShapeRule {
  const char* name;
  ShapeRule rule;
  bool elementwise;  // operands are broadcast to the output's shape before the kernel sees them
};
struct NamedDTypeRule {
  const char* name;
  DTypeRule rule;
};
// Throw Error(value) that lists the known names.
const NamedShapeRule& shape_rule(const std::string& name);
const NamedDTypeRule& dtype_rule(const std::string& name);

// The view function of an op that only changes metadata (op_view), which has the name of its shape rule. Throws
// Error(value) where there is none.
View view(const std::string& shape_rule);

// ---- dtypes -------------------------------------------------------------------------------------

// Sets a dtype per operand (for a variadic operand up to kMaxInputs) and per output. The op's rule decides the
// dtype of the value operands; masks must be bool, indices integers, and raw operands keep their dtype. Returns a
// mask of the operands that are given.
uint64_t infer_dtypes(const Inference& inv, DType* compute, DType* result);
// The dtype that all value operands promote to. Throws TypeError where there is none, ValueError where a variadic
// operand is an empty sequence.
DType promoted(const Inference& inv);
// The dtype attribute; where it is not given, the dtype that follows from a creation op's scalar attributes (full:
// 1 gives int64, 1.0 float32); none where neither decides. Plans depend on it.
DType given_dtype(const Op&, const Attrs&);
// The dtype of a Python scalar (bool, int64, float32 or complex64) in a call whose arrays promote to `arrays`.
DType weak_dtype(DType arrays, DType scalar);
// The `arrays` argument of weak_dtype in a call of the op: the dtype that they promote to, or float64, which loses
// nothing, for factors that are converted independently.
DType dtype_of_numbers(const Op&, DType promoted);

// ---- for shape rules ----------------------------------------------------------------------------

// A shape under construction. Rules keep it below twice the legal rank; Inference::output checks it.
struct Shape {
  int64_t at[2 * DVT_MAX_NDIM];
  int rank = 0;

  Shape() = default;
  explicit Shape(std::span<const int64_t> s) { append(s); }
  void push(int64_t n) { at[rank++] = n; }
  void append(std::span<const int64_t> s) {
    for (int64_t n : s) push(n);
  }
  void append(const TensorType& t, int from, int to) { append(t.shape().subspan(from, to - from)); }
  void insert(int axis, int64_t n) {
    for (int i = rank++; i > axis; --i) at[i] = at[i - 1];
    at[axis] = n;
  }
  operator std::span<const int64_t>() const { return {at, size_t(rank)}; }
};

// The position of an attribute. find_attr returns -1 where there is none, attr fails and names the op's
// declaration.
int find_attr(const Inference&, std::string_view name);
int attr(const Inference&, std::string_view name);
int axis_attr(const Inference&);  // attr(inv, "axis") without a search
// An attribute that must be one int, at least `least`.
int64_t integer(const Inference&, int attr, int64_t least = INT64_MIN);
bool flag(const Inference&, std::string_view name);  // false where the op has no such attribute
// The ints of an attribute that must be an int or ints, in memory of this call that the rule may write to.
std::span<int64_t> ints(Inference&, int attr);
// The same with exactly n values: a single one is repeated.
std::span<int64_t> ints(Inference&, int attr, int n, int64_t least);
void set_i64(Inference&, int attr, int64_t);
void set_f64(Inference&, int attr, double);

std::string operand_name(const Op&, int i);                               // "x1", "arrays[2]"
std::string described(const Op&, int i, std::span<const int64_t> shape);  // "x1 of shape (2, 3)"
inline std::string operand_name(const Inference& inv, int i) { return operand_name(inv.op, i); }
inline std::string described(const Inference& inv, int i) { return described(inv.op, i, inv.operand(i).shape()); }
// Makes an axis non-negative. A failure names operand i, which has or yields `rank` axes.
int axis(const Inference&, int64_t value, int rank, int i = 0);
// The attribute `axis` of a single-axis op, normalised against operand 0.
int single_axis(Inference&);
// The attribute as a bit mask; normalised to the sorted list, None to all axes.
uint32_t axes(Inference&, int attr, int rank);
void expect_rank(const Inference&, int i, int least, int most = DVT_MAX_NDIM);
void expect_shape(const Inference&, int i, std::span<const int64_t> shape, std::string_view why);
void expect_key(const Inference&, int i);  // of a draw of random numbers: four uint32
}  // namespace dovetail::rules
