// Shared by the files that bring memory in and out: host memory, DLPack, nested lists.
#pragma once
#include "bindings/array.hpp"

namespace dovetail::bindings {
constexpr int kHostMemory = 1;            // DLPack's kDLCPU
constexpr uint64_t kManyBytes = 1 << 16;  // copying more takes long enough to release the GIL

Tensor empty_tensor(DType dtype, std::span<const int64_t> shape, Device& device);
// Other libraries treat every byte except 0 as True; kernels expect 0 or 1, because they compute with the bytes.
bool are_plain_bools(std::span<const uint8_t> bytes);
Tensor upload(const void* data, DType dtype, std::span<const int64_t> shape,
              Device& device);             // row-major host memory; bools become 0 and 1
void download(const Tensor& t, void* to);  // the other way
std::vector<int64_t> to_shape(const py::object& shape, const char* op);
py::object wrap(Tensor t);

void make_dlpack(py::module_& m);
void make_sequences(py::module_& m);
}  // namespace dovetail::bindings
