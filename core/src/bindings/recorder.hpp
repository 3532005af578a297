// The recorder of a trace: while one is set on a thread, ops, operators and indexing of that thread are passed to
// it, those on arrays that are no tracers and those without operands, as zeros(), included.
#pragma once
#include <atomic>

#include "bindings/array.hpp"

namespace dovetail::bindings {
inline std::atomic<int> recorders{0};  // of all threads, so that calls outside of traces look at no thread's own

[[gnu::cold, gnu::noinline]] PyObject* recorder_of_thread();  // borrowed; nullptr: none
inline PyObject* recorder() {
  if (recorders.load(std::memory_order_relaxed) == 0) [[likely]]
    return nullptr;
  return recorder_of_thread();
}
std::string user_line();  // file:line of the innermost Python frame outside of dovetail
// The result of a call that the recorder of a function takes without Python code; NULL without an exception: of
// another call. `at`: an object for each of the op's parameters, NULL for its default.
PyObject* record_plain(PyObject* recorder, const Op& op, PyObject* const* at);
// recorder.__dovetail_op__(function, arguments...), with arguments as vectorcall passes them.
PyObject* record_call(PyObject* recorder, PyObject* function, PyObject* const* args, int nargs, PyObject* kwnames);
// recorder.operator(function, operands, in_place)
PyObject* record_operator(PyObject* recorder, const Op& op, PyObject* const* operands, int n, bool in_place);
// Before Python code reads elements of an array: in a trace, recorder.read(array, what), which raises where a later
// call may find another value there. Throws py::error_already_set.
[[gnu::cold]] void ask_to_read(PyObject* recorder, PyObject* array, const char* what);
inline void expect_readable(PyObject* array, const char* what) {
  if (PyObject* const trace = recorder()) [[unlikely]]
    ask_to_read(trace, array, what);
}
// recorder.about(array, name): the attribute of the array as the trace has it; None: as it is. NULL with an
// exception.
[[gnu::cold]] PyObject* ask_about(PyObject* recorder, PyObject* array, const char* name);
}  // namespace dovetail::bindings
