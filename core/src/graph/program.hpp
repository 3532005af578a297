// A graph of calls of ops, symbolic in the sizes of its inputs: what a decomposition, a traced function and a saved
// file are. Ops are those of the registry; sizes and numbers of attributes are entries of a table of expressions.
// For the sizes of one call the shape rules run over it once: that is a binding.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "graph/number.hpp"
#include "rules/inference.hpp"
#include "types/scalar.hpp"

namespace dovetail {
constexpr int kMaxProgramDepth = 16;  // of programs within programs

// Row-major elements in host memory, which do not change.
struct HostArray {
  DType dtype = DType::none;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;  // of the memory
  TensorType type() const;            // throws Error(value) where the size overflows
};

struct Program : std::enable_shared_from_this<Program> {
  // An element of an attribute that is an entry of `numbers`.
  struct Slot {
    uint8_t attr;
    int16_t element;  // of a list; -1: the attribute is one number
    int number;
    bool operator==(const Slot&) const = default;
  };
  struct Node {
    const Op* op;
    std::vector<int> in;  // values; -1: not given
    int out;              // output 0; further outputs follow it
    uint32_t n_out = 1;   // the op's, but for control ops
    Attrs attrs;          // as they were given; at slots the numbers of the trace
    std::vector<Slot> slots;
    uint32_t numbers;        // it and those before it need as many entries of the table
    std::vector<int> dies;   // values that no later node and no output uses
    std::string where = {};  // file:line of the user's function
  };
  struct Input {
    int value;
    DType dtype;                 // none: any, as the rules make of it
    std::vector<int64_t> shape;  // -1: any size; not looked at where the dtype is any
    std::string name = {};
    std::vector<std::string> size_names = {};  // of the axes, "" without one; may be empty
    bool is_scalar = false;                    // 0-d, in host memory; not in files
    std::string_view size_name(size_t axis) const {
      return axis < size_names.size() ? std::string_view(size_names[axis]) : std::string_view();
    }
  };
  struct Constant {
    int value;
    Scalar scalar;
    int number = -1;  // its value, in the scalar's dtype; -1: the scalar's own
  };
  struct Array {
    int value;
    std::string name;
    HostArray elements;
  };
  int n_values = 0;
  std::vector<Input> inputs;
  std::vector<Constant> constants;  // in the order of their values
  std::vector<Array> arrays;
  std::vector<Node> nodes;
  std::vector<int> outputs;
  std::vector<std::shared_ptr<const Program>> programs;  // that attributes of nodes hold
  int depth = 0;                                         // of programs within this one
  std::vector<Number> numbers;
  std::vector<Guard> guards;  // in the order in which they were recorded
  std::vector<std::string>
      arguments;          // names of the numbers that a call gives, as ProgramBuilder::argument made them
  std::string signature;  // how a front end takes arguments and gives results, as JSON; may be empty
  // What the program's file brings for a process whose library has no decomposition of such a call.
  struct Decomposition {
    uint32_t version;     // of the op, as the pattern's attributes are counted
    std::string pattern;  // as decomposition_pattern() of dispatch/execute.hpp names calls
    std::shared_ptr<const Program> program;
  };
  using Decompositions = std::map<std::string, std::vector<Decomposition>>;  // by the op's name
  Decompositions decompositions;
  std::deque<std::string> strings;  // what attributes point to
  std::deque<std::vector<int64_t>> int_lists;
  std::deque<std::vector<double>> float_lists;
};

// An open size while a program is recorded, where nobody names one: many numbers divide it.
constexpr int64_t kSizeOfTrace = 120;

// The program of an attribute of kind DVT_A_PROGRAM. The program of the node owns it.
inline const Program& program_in(const dvt_attr& a) { return *reinterpret_cast<const Program*>(a.v.p); }
inline dvt_attr program_attr(const Program& p) {
  return {DVT_A_PROGRAM, 1, {.p = reinterpret_cast<const dvt_program*>(&p)}};
}

// Records calls on abstract tensors. Values and numbers are named by their index.
class ProgramBuilder {
 public:
  ProgramBuilder() : program_(std::make_shared<Program>()) {}
  int input(DType dtype, std::span<const int64_t> shape);
  // One that takes a dtype and sizes as declared (its value is set here). `sizes`: those of the trace.
  int input(Program::Input declared, std::span<const int64_t> sizes);
  // Elements of the same memory become one value. Without a name it gets one.
  int array(HostArray, const std::string& name = {});
  int constant(const Scalar&, int number = -1);
  const TensorType& value(int i) const { return program(), values_.at(size_t(i)); }
  // Infers the outputs and returns the first one's value; the others follow it.
  int call(const Op& op, const std::vector<int>& in, const Attrs& attrs, std::vector<Program::Slot> slots = {});
  // The same for a control op, whose attributes are complete: its programs become this program's. Such a node has
  // as many outputs as its programs give.
  int control(const Op& op, const std::vector<int>& in, const Attrs& attrs, std::vector<Program::Slot> slots = {});
  void order_inputs(const std::vector<int>& values);  // all of them
  uint32_t outputs_of_last_call() const { return program().nodes.back().n_out; }
  int cast(int value, DType dtype);  // by astype; the value itself where it has the dtype

  int number(Number);
  bool is_literal(int number) const;
  // A number that each call gives, in Attrs: of k arguments the integers are a list in attribute 0, the reals one
  // in attribute 1, each of k elements.
  int argument(bool is_real, std::string name);
  void guard(Guard::Compare, int a, int b);
  void at(std::string where) { where_ = std::move(where); }  // of the nodes and guards that follow
  const std::string& where() const { return where_; }
  // Makes the program one for just these sizes and these numbers of attributes: a tracer that has looked at them.
  void fix(const Attrs&, int n_attrs);
  std::shared_ptr<const Program> finish(const std::vector<int>& outputs, std::string signature = {});

 private:
  Program& program() const;  // throws once it is finished: a decomposition may have kept one of its values
  // The next one, whose outputs are no values yet.
  Program::Node node_of(const Op&, const std::vector<int>& in, uint32_t n_out, const Attrs&,
                        std::vector<Program::Slot>) const;
  void own(Attrs& attrs);
  void own(const Program& part);
  int add_value(TensorType);
  Number known_size(Number) const;
  std::shared_ptr<Program> program_;
  std::vector<TensorType> values_;  // with the sizes of the trace
  NumberTable numbers_;
  std::set<std::tuple<Guard::Compare, int, int>> guarded_;
  std::unordered_set<const Program*> parts_;  // that the program owns
  std::string where_;
};

void plan_lifetimes(Program&);  // sets what dies at each node

// What the dtype rules decide for a node. It follows from the dtypes of the program's inputs: it is the same for
// all sizes.
struct NodeDTypes {
  DType compute[kMaxInputs], result[kMaxOutputs];
  const Attrs* attrs = nullptr;  // of the binding that they are from, for others to share where theirs are equal
};

// A program with the sizes and attributes of one call: what the rules made of them.
struct Binding {
  struct Node {
    const Attrs* attrs;  // normalised; of the binding, the program, the NodeDTypes, or no_attrs without attributes
    uint64_t work;
  };
  static const Attrs no_attrs;
  std::shared_ptr<const Program> program;
  std::vector<Node> nodes;
  std::vector<TensorType> values;  // with dense strides
  std::vector<Scalar> constants;   // in the program's order; empty where all have the values of the program
  std::vector<NumberValue> numbers;
  std::vector<std::unique_ptr<Attrs>> attrs;  // of the nodes for which they are not the program's own
  // By control node: of a loop one for each round, of others one for each program. Equal ones are shared.
  std::map<size_t, std::vector<std::shared_ptr<Binding>>> programs;
  uint64_t steps = 0;  // nodes that one run runs: those of a loop in every round, of other control nodes once

  const Scalar& constant(size_t i) const { return constants.empty() ? program->constants[i].scalar : constants[i]; }
};
// A number as a constant of a dtype. Throws Error(value) where an integer does not fit.
Scalar constant_of(DType, const Number&, NumberValue);
// What bind_program takes for Program::arguments; of each number one of the lists has the value. It points to them.
inline Attrs arguments_of_program(const std::vector<int64_t>& integers, const std::vector<double>& reals) {
  Attrs arguments;
  arguments.at[0] = {DVT_A_I64S, uint32_t(integers.size()), {.is = integers.data()}};
  arguments.at[1] = {DVT_A_F64S, uint32_t(reals.size()), {.fs = reals.data()}};
  return arguments;
}
// Takes the memory of a binding's values and numbers for the thread's next binding.
void give_back_memory(Binding&);
// A copy of a node's attributes with the numbers of a binding in their slots.
Attrs filled_attrs(const Program&, const Program::Node&, const std::vector<NumberValue>& numbers);
// Records the program's calls on values of the builder, as a part of another program; its guards, and the sizes
// that its inputs declare, become guards. `bound`: for the sizes that these values have.
struct InlineOptions {
  const std::vector<int>* arrays =
      nullptr;  // values of the program's arrays; nullptr: the builder's program gets them
  // nullptr: numbers that are attributes of the call are those of the call around it. Else they are literals: of a
  // decomposition whose op has these attributes.
  const Attrs* attributes = nullptr;
  // The results of node `k`, for operands that are values of the builder, in its place; -1 for what no other node
  // that is left uses. `became`: of each value of the program what it is in the builder.
  std::function<std::optional<std::vector<int>>(size_t k, const std::vector<int>& in,
                                                const std::vector<int>& became)>
      replace;
  std::vector<int>* became = nullptr;  // gets of each value of the program what it became, -1: nothing
};
std::vector<int> record_inline(ProgramBuilder&, const Binding& bound, const std::vector<int>& operands,
                               const InlineOptions& = {});
// Nothing where a guard does not hold, or where Python would have raised; `why` (may be nullptr) is set then.
// `attrs`: those of the op whose decomposition it is. `dtypes`: per node, from another binding for inputs of these
// dtypes; nullptr: the dtype rules run. Throws what rules throw.
std::optional<Binding> bind_program(std::shared_ptr<const Program>, const TensorType* const* inputs,
                                    const Attrs* attrs, const NodeDTypes* dtypes = nullptr,
                                    std::string* why = nullptr);
// "ids", or "input 0" of one without a name.
std::string name_of_input(const Program&, size_t i);
// Why the operands are not as the program's inputs are declared; empty where they are.
std::string misfit(const Program&, const TensorType* const* inputs);
}  // namespace dovetail
