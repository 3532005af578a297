// Work that is recorded into a graph instead of done: the group "dovetail.capture" of abi.h.
#pragma once
#include <optional>

#include "device/device.hpp"

namespace gpu {
// The number of the capture that the stream records into, if it records.
std::optional<cuuint64_t> capture_of(CUstream);
// Reports DVT_INVALID if the stream records: CUDA would make the whole capture invalid.
dvt_status refuse_in_capture(const dvt_stream&, const char* what);
// Ends the capture that the stream records into, if any, and drops its graph.
void abandon_capture(dvt_stream&);

// The groups of functions beyond the core of abi.h.
extern const dvt_capture captures;
namespace nccl {
extern const dvt_collectives collectives;
}
}  // namespace gpu
