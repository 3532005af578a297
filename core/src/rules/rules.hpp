// The named rules. A shape rule is a function of this folder, listed in rules.inc: it checks what it needs, says
// what it expected and got, normalises the attributes in place (twice is as good as once), fills the outputs'
// shapes and estimates the work. A dtype rule decides in what dtype an op computes. Attributes are found by their
// names.
#pragma once
#include <string_view>

#include "dispatch/invocation.hpp"

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

// An op that is metadata only (op_view). To be called after its shape rule: gives output 0 the operand's data, a
// share of its buffer and the view's strides. Returns false, having done nothing, where the view needs a compact
// operand on the device first: reshape of some strided ones, any host scalar.
using View = bool (*)(Invocation&);
View view(const std::string& op);  // throws Error(value) where the core has no such view

// ---- dtypes -------------------------------------------------------------------------------------

// Fills a dtype per operand (those of a variadic operand up to kMaxInputs) and per output: the op's rule decides
// over the value operands; masks must be bool, indices integers, raw operands stay. Returns a bit per parameter
// given.
uint64_t infer_dtypes(const Invocation& inv, DType* compute, DType* result);
// The dtype that all value operands promote to. Throws TypeError where there is none, ValueError where a variadic
// operand is an empty sequence.
DType promoted(const Invocation& inv);
// The dtype attribute; where it is not given, what the scalar attributes of a creation op make of it (full: 1 gives
// int64, 1.0 float32); none where neither decides. Plans depend on it.
DType given_dtype(const Invocation& inv);
// What a Python scalar of dtype bool, int64, float32 or complex64 becomes beside arrays that promote to `arrays`.
DType weak_dtype(DType arrays, DType scalar);
// The `arrays` of weak_dtype in a call of the op: what they promote to, or for factors that count each for itself
// float64, which loses nothing.
DType dtype_of_numbers(const Op&, DType promoted);

// ---- for shape rules ----------------------------------------------------------------------------

// A shape in the making. Rules keep it below twice the legal rank; Invocation::output has the last word.
struct Shape {
  int64_t at[2 * DVT_MAX_NDIM];
  int rank = 0;

  Shape() = default;
  explicit Shape(std::span<const int64_t> s) { append(s); }
  void push(int64_t n) { at[rank++] = n; }
  void append(std::span<const int64_t> s) {
    for (int64_t n : s) push(n);
  }
  void append(const Tensor& t, int from, int to) { append(t.shape().subspan(from, to - from)); }
  void insert(int axis, int64_t n) {
    for (int i = rank++; i > axis; --i) at[i] = at[i - 1];
    at[axis] = n;
  }
  operator std::span<const int64_t>() const { return {at, size_t(rank)}; }
};

// The position of an attribute; -1, or a failure that blames the op's declaration.
int find_attr(const Invocation&, std::string_view name);
int attr(const Invocation&, std::string_view name);
// An attribute that must be one int, at least `least`.
int64_t integer(const Invocation&, int attr, int64_t least = INT64_MIN);
bool flag(const Invocation&, std::string_view name);  // false where the op has no such attribute
// The ints of an attribute that must be an int or ints, in memory of this call that the rule may write to.
std::span<int64_t> ints(Invocation&, int attr);
// The same, brought to n values: one stands for all.
std::span<int64_t> ints(Invocation&, int attr, int n, int64_t least);
void set_i64(Invocation&, int attr, int64_t);
void set_f64(Invocation&, int attr, double);

std::string operand_name(const Invocation&, int i);  // "x1", "arrays[2]"
std::string described(const Invocation&, int i);     // "x1 of shape (2, 3)"
// A non-negative axis of something of `rank` axes that the failure describes by operand i.
int axis(const Invocation&, int64_t value, int rank, int i = 0);
// The attribute `axis` of a single-axis op, normalised against operand 0.
int single_axis(Invocation&);
// The attribute as a bit mask; normalised to the sorted list, None to all axes.
uint32_t axes(Invocation&, int attr, int rank);
void expect_rank(const Invocation&, int i, int least, int most = DVT_MAX_NDIM);
void expect_shape(const Invocation&, int i, std::span<const int64_t> shape, std::string_view why);
// False where two sizes differ and neither is 1. `out` has room for DVT_MAX_NDIM and may be a's memory.
bool broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b, int64_t* out, int* rank);
bool broadcasts_to(std::span<const int64_t> from, std::span<const int64_t> to);
}  // namespace dovetail::rules
