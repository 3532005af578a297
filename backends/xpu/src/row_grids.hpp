// The work-groups of kernels over rows (kernels/common/axes.hpp).
#pragma once
#include "gpu/plan.hpp"

namespace gpu {
// A group for each of so many chunks of work, of as many items as pay for `size` elements.
Grid grid_of_groups(uint64_t groups, uint64_t size);
// Groups of items side by side on the last kept axis, for each part.
Grid grid_of_columns(const ReductionPlan&);
}  // namespace gpu
