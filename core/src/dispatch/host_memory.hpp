// Arrays from and to memory of the host.
#pragma once
#include "dispatch/invocation.hpp"

namespace dovetail {
constexpr int kHostMemory = 1;            // DLPack's kDLCPU
constexpr uint64_t kManyBytes = 1 << 16;  // copying more takes long enough to let other threads run

Tensor empty_tensor(DType dtype, std::span<const int64_t> shape, Device& device);
// Other libraries treat every byte except 0 as True; kernels expect 0 or 1, because they compute with the bytes.
bool are_plain_bools(std::span<const uint8_t> bytes);
// Row-major host memory; bools become 0 and 1.
Tensor upload(const void* data, DType dtype, std::span<const int64_t> shape, Device& device);
void download(const Tensor& t, void* to);  // the other way
// Into the elements of `t`, of any strides.
void write_elements(Tensor& t, const void* data);
}  // namespace dovetail
