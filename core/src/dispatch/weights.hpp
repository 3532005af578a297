// Arrays from and to safetensors files.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "dispatch/tensor.hpp"
#include "graph/safetensors.hpp"

namespace dovetail {
// On devices that work in the host's memory the array is the mapped file itself, where its elements are aligned.
Tensor load_tensor(const safetensors::File&, const safetensors::Entry&, Device&);
// The header has the arrays' order; the data begin with the widest dtype, so that elements are aligned without
// gaps. Readers of `path` see the old file or the new one. Throws Error(value), or Error(runtime) where it cannot
// be written.
void save_tensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>&, Json metadata);
}  // namespace dovetail
