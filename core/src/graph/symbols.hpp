// The types of a program's values with symbols for sizes, as a compiler of devices sees them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "graph/program.hpp"

namespace dovetail {
struct SymbolicTypes {
  struct Type {
    DType dtype = DType::none;
    int rank = -1;               // -1: not known
    std::vector<int64_t> shape;  // a dimension d < 0 is symbol -1 - d
  };
  struct Symbol {
    int64_t hint;                // -1: none
    int input, axis;             // of which input it is the size; -1: derived from others
    std::string_view name = {};  // the program's, "" without one
  };
  std::vector<Type> values;  // by the program's numbers of values
  std::vector<Symbol> symbols;
  bool complete = false;  // are all types known?
};

// As the program is written: types of inputs and constants only.
SymbolicTypes declared_types(const Program&);

// Of all values, for a binding and sizes like its. Which axes have equal sizes is found by binding the program
// again for other sizes of its inputs, one after another, where its guards and rules allow them. What follows from
// that is presumed: symbols_in() checks it for each binding. Sizes of 1 count as fixed, since they broadcast.
// `attrs`: those that the program was bound with.
SymbolicTypes symbolic_types(const Binding& hints, const Attrs* attrs);

// The values of the symbols in a binding of the same program; nothing where the types do not describe it.
std::optional<std::vector<int64_t>> symbols_in(const SymbolicTypes&, const Binding&);
}  // namespace dovetail
