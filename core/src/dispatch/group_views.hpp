// Views in front of groups: slices, permutations and the like, whose results only a group reads. The group's code
// reads the memory that they are views of, so that none of them is made.
#pragma once
#include "dispatch/tensor.hpp"
#include "graph/schedule.hpp"

namespace dovetail {
class Values;

// An input of a group as it lies in a row-major array.
struct GroupView {
  int base = -1;             // the array's value; -1: the input is no view
  uint64_t of_elements = 0;  // that the array has
  uint64_t offset = 0;       // in bytes
  Tensor type;               // shape and strides
};

bool is_view(const Program::Node&);
// The schedule for groups of these numbers, where views in front of a group are nodes of its step. Such views get
// the group's number. Nodes that are left without another one in their step are no group.
Schedule schedule_with_views(const Binding&, std::vector<uint32_t>& group);
// For each of a group's inputs; empty: there are no views, or one is not possible without a copy. `views`: nodes of
// the program in order.
std::vector<GroupView> bind_views(const Binding&, std::span<const uint32_t> views, std::span<const int> inputs,
                                  Device&);
// Whether all that they are views of is row-major.
bool views_hold(std::span<const GroupView>, const Values&);
// `type` at the view's place in `base`.
DLTensor view_of(const GroupView&, const Tensor& base);
}  // namespace dovetail
