// What serves scaled_dot_product_attention, the best first: each adds its row for a type, if it serves that.
#pragma once
#include "dovetail/backend.hpp"

namespace gpu::attention {
void add_cudnn(dvt::KernelTable&, DLDataType);  // on Hopper and newer
void add_flash(dvt::KernelTable&, DLDataType);  // the kernels of FlashAttention
void add_plain(dvt::KernelTable&, DLDataType);  // one that takes all
}  // namespace gpu::attention
