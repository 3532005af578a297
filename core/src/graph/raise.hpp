// What people write for an op, found in a program: softmax as exp and sum, attention as two products.
#pragma once
#include "graph/program.hpp"

namespace dovetail {
struct Form {
  Binding written;                    // the form, for sizes of one rank
  std::shared_ptr<const Program> op;  // the same by the op; inputs and results as the form has them
  std::vector<double> marks;          // constants of both that stand for any
};

struct Raised {
  const Form* form;
  size_t root;                // the node that gives the form's result
  std::vector<size_t> nodes;  // all that the form stands for; others use the root's result alone
  std::vector<int> operands;  // values
  std::vector<double> marks;  // what they are here
};

// Forms whose nodes nobody else needs. None shares a node with another.
std::vector<Raised> find_forms(const Binding&, std::span<const Form>);
// The op's program with the marks of this place.
std::shared_ptr<const Program> op_program(const Raised&);
}  // namespace dovetail
