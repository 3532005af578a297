#include "row_grids.hpp"

namespace gpu {
namespace {
Grid groups_of(uint64_t groups, size_t width) {
  constexpr uint64_t most_groups = 1 << 20;  // kernels go on in steps of all groups
  return {1, {size_t(std::clamp<uint64_t>(groups, 1, most_groups)) * width}, {width}};
}
// Items of a group, when each takes so many elements.
size_t width_for(uint64_t size, uint64_t each) {
  size_t width = 16;
  while (width < group_size && width * each < size) width *= 2;
  return width;
}
}  // namespace

uint64_t divide_by(uint64_t n) { return n; }
void make_whole(ReductionPlan& how) { how.parts = 1; }

Grid grid_of_groups(uint64_t groups, uint64_t size) {
  // Few items: a vector of a CPU, a sub-group of a GPU. More of them are slower where there are many groups.
  return groups_of(groups, width_for(size, 512));
}

Grid grid_of_columns(const ReductionPlan& how) {
  const uint64_t columns = how.axis[how.kept - 1].size;
  const size_t width = width_for(columns, 1);
  return groups_of(how.count / columns * ((columns + width - 1) / width) * how.parts, width);
}
}  // namespace gpu
