// Calls of traced functions as nodes of the program that a builder makes.
#pragma once
#include <span>

#include "bindings/array.hpp"
#include "graph/program.hpp"

namespace dovetail::bindings {
// A value of the builder, or a Python number, borrowed, that is an entry of the builder's table; neither: not
// given.
struct RecordedOperand {
  int value = -1;
  PyObject* number = nullptr;
  int entry = -1;  // of a number that is the same in every call
};
// Records a call with complete attributes, of which `numbers` are entries of the table. Returns its first output's
// number; further outputs follow it. Throws what the op does.
int record_node(ProgramBuilder& b, const Op& op, std::span<const RecordedOperand> operands, const Attrs& attrs,
                std::vector<Program::Slot> numbers);
}  // namespace dovetail::bindings
