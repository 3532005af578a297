// A decomposition's graph: traced once with integer shapes, replayed here without the front end. The C view of it
// (dvt_program) is what a compiler extension takes.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "dispatch/invocation.hpp"

namespace dovetail {
struct Program {
  struct Node {
    const Op* op;
    std::vector<int> in;  // values; -1: not given
    std::vector<int> out;
    Attrs attrs;            // normalised
    std::vector<int> dies;  // values that no later node and no output uses
    int donor = -1;         // one of them whose memory output 0 may take
  };
  std::vector<Tensor> values;  // abstract; constants are host scalars
  std::vector<Node> nodes;
  std::vector<int> inputs, outputs;
  std::deque<std::string> strings;  // what attributes point to
  std::deque<std::vector<int64_t>> int_lists;
  std::deque<std::vector<double>> float_lists;
};

// Records the calls that a decomposition makes on abstract tensors. Values are named by their index.
class ProgramBuilder {
 public:
  ProgramBuilder() : program_(std::make_shared<Program>()) {}
  int input(const Tensor& like, DType dtype);
  int constant(const Tensor& host_scalar);
  const Tensor& value(int i) const { return program().values.at(i); }
  // Infers the outputs and returns the first one's value; the others follow it.
  int call(const Op& op, const std::vector<int>& in, const Attrs& attrs);
  std::shared_ptr<const Program> finish(const std::vector<int>& outputs);

 private:
  Program& program() const;  // throws once it is finished: a decomposition may have kept one of its values
  void own(Attrs& attrs);
  std::shared_ptr<Program> program_;
};

// Runs the program on operands of exactly the dtypes and shapes it was traced with.
void replay(const Program& program, const Tensor* const* in, Tensor* const* out, Device& device);
}  // namespace dovetail
