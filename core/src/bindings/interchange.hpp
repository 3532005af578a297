// What the files about memory of others share: from and to the host, DLPack, nested lists.
#pragma once
#include "bindings/array.hpp"

namespace dovetail::bindings {
constexpr int kHostMemory = 1;            // DLPack's kDLCPU
constexpr uint64_t kManyBytes = 1 << 16;  // moving more takes long enough for the GIL to be let go

Tensor empty_tensor(DType dtype, std::span<const int64_t> shape, Device& device);
// Other libraries take every byte but 0 for True; kernels expect 0 and 1, and so do results of arithmetic on them.
bool are_plain_bools(std::span<const uint8_t> bytes);
Tensor upload(const void* data, DType dtype, std::span<const int64_t> shape,
              Device& device);             // row-major host memory; bools become 0 and 1
void download(const Tensor& t, void* to);  // the other way
std::vector<int64_t> to_shape(const py::object& shape, const char* op);
py::object wrap(Tensor t);

void make_dlpack(py::module_& m);
void make_sequences(py::module_& m);
}  // namespace dovetail::bindings
