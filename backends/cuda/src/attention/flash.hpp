// FlashAttention's kernels on mma.sync, for whoever describes a call to them.
#pragma once
#include "attention/call.hpp"

namespace gpu::attention {
// In queries: why they cannot serve heads of these sizes, or so many rows in so many matrices; nullptr where they
// can.
const char* flash_refusal(int64_t size, int64_t value_size);
const char* flash_refusal(const FlashShape&, int64_t queries, int64_t keys, int64_t sequences, int64_t matrices);

FlashShape shape_of(int64_t size, int64_t value_size);
// With a mask, dropout, or a scale that may turn the order of scores: the general kernels' calls.
bool is_general(const Flash&);
// Launches them over so many heads of all batches.
dvt_status launch_flash(dvt_device*, const dvt_call*, DLDataType, Flash, int64_t matrices);
}  // namespace gpu::attention
