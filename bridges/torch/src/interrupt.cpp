// Python's KeyboardInterrupt as an exception of C++, in a file of its own: torch's header for it includes Python.h.
#include <torch/csrc/Exceptions.h>

#include "runtime.hpp"

namespace dovetail_torch {
namespace {
struct Interrupted final : torch::PyTorchError {
  PyObject* python_type() override { return PyExc_KeyboardInterrupt; }
};
}  // namespace

void raise_interrupt() { throw Interrupted(); }
}  // namespace dovetail_torch
