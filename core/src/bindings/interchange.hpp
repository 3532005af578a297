// Shared by the files that bring memory in and out: host memory, DLPack, nested lists.
#pragma once
#include "bindings/array.hpp"
#include "dispatch/host_memory.hpp"

namespace dovetail::bindings {
std::vector<int64_t> to_shape(const py::object& shape, const char* op);
py::object wrap(Tensor t);

void make_dlpack(py::module_& m);
void make_dlpack_exchange(py::module_& m);
void make_sequences(py::module_& m);
void make_safetensors(py::module_& m);
void make_searching(py::module_& m);
void make_runtime_arrays(py::module_& m);
}  // namespace dovetail::bindings
