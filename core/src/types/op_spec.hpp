// How an op is declared, as data: parameters, the names of its rules, its version.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dovetail {
constexpr int kMaxInputs = 8;  // of an op that is not variadic
constexpr int kMaxOutputs = 4;
constexpr int kMaxAttrs = 8;

enum class ParamKind : uint8_t {
  // operands
  value,  // takes part in the dtype rule; Python scalars take the dtype of the arrays
  mask,   // bool
  index,  // integers, cast to int64
  raw,    // any dtype, left alone
  // attributes
  i64,
  f64,
  boolean,
  str,
  i64s /* an int or a sequence of ints */,
  dtype,
  scalar /* int, float, bool or complex */,
  program /* of a control op */
};
constexpr bool is_operand(ParamKind k) { return k <= ParamKind::raw; }

struct AttrDefault {  // `required` for operands and for attributes without a default
  enum Kind : uint8_t { required, none, i64, f64, boolean, str, i64s } kind = required;
  int64_t i = 0;
  double f = 0;
  std::string s{};
  std::vector<int64_t> is{};
};

struct ParamSpec {
  std::string name;
  ParamKind kind;
  bool optional = false;  // an operand that may be None
  bool variadic = false;  // an operand given as a sequence of arrays: concat
  bool keyword_only = false;
  AttrDefault fallback{};
  uint32_t since = 1;  // the op version that brought this parameter
};

enum OpFlags : uint32_t {
  op_half_in_f32 = 1,  // a decomposition, or a kernel that a device lacks, computes narrow floats in float32
  op_has_decomposition = 2,
  op_must = 4,                // one of the primitives that every device has
  op_private = 8,             // for decompositions; not in a public namespace
  op_view = 16,               // metadata only: runs in the core and shares the operand's buffer
  op_set_slice = 32,          // writes a region of its first operand: runs in the core, over copies
  op_converts = 64,           // only converts to another dtype: from or to fp8 it may do so by way of float32
  op_identity_on_ints = 128,  // returns integers as they are
  op_integer_exponent = 256,  // of integers, operand 1 must not be negative
  // Control ops are nodes of programs: their attributes hold programs, each node has its own number of results.
  op_loop = 512,     // attributes count, numbers, body: rounds whose number follows from sizes
  op_branch = 1024,  // attributes then, else: one of two programs, by a bool read at run time
  op_while = 2048,   // attributes cond, body: rounds while cond gives true
  op_scan = 4096,    // attributes n_carry, length, body: rounds over slices of arrays
  op_control = 512 | 1024 | 2048 | 4096,
  // Within dovetail.autocast() floats narrower than float64, except float8, among its value operands become
  op_autocast_lower = 8192,          // the dtype of the scope
  op_autocast_float32 = 16384,       // float32
  op_complex_decomposition = 32768,  // complex numbers have a decomposition, whether or not others have
  op_stored_decomposition = 65536,   // stored dtypes, too
  op_autocast = 8192 | 16384,
};

struct OpSpec {
  std::string name;  // "softmax"; a third party's "acme.foo"
  uint32_t version = 1;
  std::string space;              // "", "nn", "random", "linalg": the public namespace below dovetail
  std::string shape, dtype;       // names of rules
  std::vector<ParamSpec> params;  // in Python order; operands and attributes may interleave
  uint32_t n_out = 1;
  uint32_t flags = 0;
  float tol = 0;    // ulp; for `dovetail ops` and kernels' promises
  std::string doc;  // its first line
};
}  // namespace dovetail
