// torch's generators on top of the runtime's: a seed and an offset, equal draws on every device.
#pragma once
#include <ATen/core/Generator.h>

#include "runtime.hpp"

namespace dovetail_torch {
const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);
// The key of a draw of `words` 32-bit words, on the device, as random ops of the runtime take it.
at::Tensor draw_key(const std::optional<at::Generator>& generator, c10::DeviceIndex index, uint64_t words);
// A generator of the CPU whose state follows from the given one, for ops that run there.
at::Generator host_generator(at::Generator generator);
}  // namespace dovetail_torch
