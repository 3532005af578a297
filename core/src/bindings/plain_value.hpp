// Comparison of plain values of Python: what a compiled function guards.
#pragma once
#include <pybind11/pybind11.h>

namespace dovetail::bindings {
// Equal values of one type, bit by bit: 1, 1.0 and True are different, and 0.0 and -0.0; NaN is itself. Numbers,
// strings, bytes, ranges, slices, and tuples, lists, dicts and sets of them, in the order in which Python goes
// through them; of everything else only the object itself. Runs no code of users.
bool same_value(PyObject* a, PyObject* b);
}  // namespace dovetail::bindings
