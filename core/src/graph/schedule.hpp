// Nodes of a program that run as one: groups, made convex, in an order in which they may run.
#pragma once
#include "graph/program.hpp"

namespace dovetail {
struct Schedule {
  struct Step {
    std::vector<uint32_t> nodes;  // in the program's order
    bool is_group;                // more than one
    std::vector<int> results;     // what other steps use, and outputs of the program
    std::vector<int> dies;        // values that no later step and no output uses, those inside a group, too
  };
  std::vector<Step> steps;
};

// `group`: of each node a number, those of one number are wanted as one; 0: by itself. A group is split where
// another step would have to run between two of its nodes.
Schedule make_schedule(const Program&, std::span<const uint32_t> group);
}  // namespace dovetail
