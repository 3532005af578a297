// Numbers of a program that follow from its operands' sizes and from attributes: a table of expressions, in which
// an entry refers to earlier ones. Integers are exact; what leaves 64 bits is an error. Reals are doubles.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace dovetail {
struct Number {
  enum Op : uint8_t {
    integer,    // i
    real,       // f
    size,       // of value a on axis b
    attribute,  // number a of the traced op's attributes, element b of it (-1: the attribute is one number)
    add,
    subtract,
    multiply,
    divide,        // always real
    floor_divide,  // as Python's //
    modulo,        // as Python's %
    minimum,
    maximum,
    shift_left,
    bit_length,  // of a
    to_real,
    floor,  // of a real, as an integer
    ceil,
    negative,
    power,  // as Python's **, where that has the kind of its operands
    bit_and,
    bit_or,
    bit_xor,
    shift_right,
  };
  Op op;
  bool is_real = false;
  int a = -1, b = -1;
  int64_t i = 0;
  double f = 0;

  bool operator==(const Number&) const = default;
};
// Their names in the text of programs, in the order of Number::Op.
inline constexpr const char* number_names[] = {
    "integer",      "real",     "size",    "attribute", "add",        "subtract",   "multiply",   "divide",
    "floor_divide", "modulo",   "minimum", "maximum",   "shift_left", "bit_length", "to_real",    "floor",
    "ceil",         "negative", "power",   "bit_and",   "bit_or",     "bit_xor",    "shift_right"};
constexpr bool is_leaf(Number::Op op) { return op <= Number::attribute; }
constexpr bool is_unary(Number::Op op) { return op >= Number::bit_length && op <= Number::negative; }
constexpr bool takes_integers(Number::Op op) {
  return op == Number::shift_left || op == Number::bit_length || op >= Number::bit_and;
}

struct NumberValue {
  int64_t i = 0;
  double f = 0;
};
double as_real(const Number&, NumberValue);

// Appends entries, equal ones once.
class NumberTable {
 public:
  int add(Number);  // the entry's index; literals are folded
  const std::vector<Number>& entries() const { return entries_; }
  std::vector<Number> take() { return std::move(entries_); }

 private:
  struct Hash {
    size_t operator()(const Number&) const;
  };
  struct Same {  // bit by bit: 0.0 and -0.0 are two entries
    bool operator()(const Number&, const Number&) const;
  };
  std::vector<Number> entries_;
  std::unordered_map<Number, int, Hash, Same> index_;
};

// The value of an entry that is no leaf, from those of its operands. Nothing where Python raises or where an
// integer leaves 64 bits.
std::optional<NumberValue> evaluate(const Number&, const std::vector<Number>&, const std::vector<NumberValue>&);

// A condition under which a program is valid: Python compared two numbers while it was traced.
struct Guard {
  // same: of one kind and bit by bit, which tells 0.0 from -0.0. A number is the same as itself where it has a
  // value.
  enum Compare : uint8_t { equal, not_equal, less, less_equal, same };
  Compare compare;
  int a, b;
  uint32_t at;             // as many nodes were recorded before it
  std::string where = {};  // file:line of the user's function

  bool operator==(const Guard&) const = default;
};
// In the order of Guard::Compare.
inline constexpr const char* compare_names[] = {"equal", "not_equal", "less", "less_equal", "same"};
bool holds(const Guard&, const std::vector<Number>&, const std::vector<NumberValue>&);
}  // namespace dovetail
