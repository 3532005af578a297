// Some nodes of a program as a program of their own: what a compiler of devices gets.
#pragma once
#include "graph/schedule.hpp"
#include "graph/symbols.hpp"

namespace dovetail {
struct Part {
  // Its inputs are values that its nodes take from outside, and the numbers among them as scalars in host memory;
  // literals stay constants. Its results are what others use.
  std::shared_ptr<const Program> program;
  std::vector<int> inputs, outputs;  // which values of the whole they are
  SymbolicTypes types;
  std::vector<int64_t> symbols;  // which symbols of the whole those of the part are
};

// `types`: of the whole, and complete. No node of the step may have attributes that follow from sizes or hold
// programs.
Part part_of(const Binding& whole, const SymbolicTypes& types, const Schedule::Step& step);
}  // namespace dovetail
