// What serves attention, the best first: each adds its row for an op and a type, if it serves that.
#pragma once
#include "dovetail/backend.hpp"

namespace gpu::attention {
enum class Op { plain, with_logsumexp };

void add_cudnn(dvt::KernelTable&, Op, DLDataType);  // on Hopper and newer
void add_flash(dvt::KernelTable&, Op, DLDataType);  // the kernels of FlashAttention
void add_plain(dvt::KernelTable&, Op, DLDataType);  // one that takes all
void add_varlen(dvt::KernelTable&, DLDataType);     // of packed sequences, by the kernels of FlashAttention
}  // namespace gpu::attention
