// The groups of a compiled function's program, for Python.
#pragma once
#include "bindings/compiled_program.hpp"

namespace dovetail::bindings {
// (launches, those without groups, (nodes, name) of each group that runs as one, why not of each node)
py::tuple launches_of(const Executable&);
// Of each group that runs as one (nodes, name, results); of each result (dtype, shape, the user's line, its
// elements by the group, by the group's nodes): bytes, or None twice where all bits are equal.
py::list compare_groups(CompiledProgram&, Match&, Miss&);
// Of each way in which a device runs the program in groups: (device, seconds that it took to make, how many nodes
// run by themselves, (name, the user's line) of each group).
py::list groups_of(RunnableProgram&);
}  // namespace dovetail::bindings
