// A program on a device: its binding with the plans of the device, and its run without any front end.
#pragma once
#include <deque>
#include <functional>
#include <map>

#include "dispatch/groups.hpp"
#include "dispatch/invocation.hpp"
#include "graph/program.hpp"

namespace dovetail {
class Values;
struct Wanted;

// How a device runs a program's nodes for inputs of some dtypes: it is the same for all sizes.
struct ProgramPlans {
  std::vector<NodeDTypes> dtypes;
  std::deque<Attrs> attrs;         // of the nodes in the binding that the plans were made for
  std::vector<const Plan*> plans;  // nullptr of a control node
  Device* device;
  uint64_t epoch;                          // of the plans
  std::shared_ptr<const Program> program;  // that they are of
  std::shared_ptr<Fusions> fusions;        // of a decomposition that is fused; else nullptr

  bool is_current() const;  // kernels and the fallback mode have not changed since
};

// The dtypes and shapes of row-major tensors, in little memory: many executables are kept.
class PackedTypes {
 public:
  // Those behind the first `n_first` are set fast by themselves. `skipped`: nullptr, or which are never set.
  explicit PackedTypes(std::span<const TensorType>, size_t n_first = 0, const std::vector<bool>* skipped = nullptr);
  size_t bytes() const { return words_.size() * sizeof(int64_t); }
  size_t size() const { return n_; }
  // To tensors without storage, one for each type, without `first` those behind the first ones only.
  void set(Tensor* const*, Device&, bool first = true) const;
  std::vector<TensorType> of(std::span<const int> values) const;

 private:
  size_t n_, n_first_;
  // Of each in turn the dtype and the rank in one, then its sizes; for n that are skipped -n.
  std::vector<int64_t> words_;
  size_t n_first_words_ = 0;
};

// A binding whose nodes have plans on a device; decompositions that nodes need are bound with it.
struct Executable {
  struct Node {
    int donor = -1;      // a value that ends with the node and whose memory output 0 may take
    bool keeps = false;  // a cast of an operand of the program to a narrow float: see cast_and_keep()
    std::shared_ptr<const Executable> nested;  // its decomposition, where that is what the plan wants
  };
  // The values that only a group has, which get their types where its nodes run one by one.
  struct Inside {
    std::vector<int> values;
    PackedTypes types;
  };
  Executable(Binding, std::shared_ptr<const ProgramPlans>, std::span<const Tensor> arrays,
             std::shared_ptr<const Fusion>);
  Device& device() const { return *plans->device; }
  // The values that end with a node.
  const std::vector<int>& dies(size_t k) const { return fusion ? fusion->dies[k] : binding.program->nodes[k].dies; }
  size_t bytes() const;  // that it takes, those of the decompositions of nodes not counted

  Binding binding;  // without its values and numbers
  std::shared_ptr<const ProgramPlans> plans;
  size_t first_inputs;               // the program's first values are so many inputs of it
  PackedTypes types;                 // of the values, but for those that only a group has
  std::vector<NumberValue> numbers;  // of the binding, where a call gives some (Program::arguments)
  bool makes_outputs;                // each is another value that a node makes
  std::vector<Node> nodes;
  std::map<size_t, std::vector<std::shared_ptr<const Executable>>> programs;  // as the binding has them
  std::vector<Tensor> arrays;                                                 // of the program, on the device
  uint64_t resets;                                                            // of the device when it was made
  std::shared_ptr<const Fusion> fusion;                                       // nullptr: node by node
  std::vector<BoundGroup> groups;                                             // of the fusion's steps
  std::vector<Inside> inside;                                                 // of these

 private:
  void leave_out_inside();
};

// For the dtypes of a binding. Throws Error(not_implemented) where the device lacks a kernel that a node needs.
std::shared_ptr<const ProgramPlans> plan_program(const Binding&, Device&, std::shared_ptr<Fusions> = nullptr);
// Throws Error(not_implemented) where the device lacks a kernel that a decomposition of a node needs. `plans`: from
// plan_program() for these dtypes. `arrays`: those of the program, on the device. `fusion`: nullptr, or of the
// program; it runs node by node where its types do not describe the binding.
std::shared_ptr<const Executable> make_executable(Binding, std::shared_ptr<const ProgramPlans> plans,
                                                  std::span<const Tensor> arrays = {},
                                                  std::shared_ptr<const Fusion> fusion = nullptr);
inline std::shared_ptr<const Executable> make_executable(Binding binding, Device& device,
                                                         std::span<const Tensor> arrays = {},
                                                         std::shared_ptr<const Fusion> fusion = nullptr) {
  auto plans = plan_program(binding, device);
  return make_executable(std::move(binding), std::move(plans), arrays, std::move(fusion));
}
// How a device runs a node of a program by itself.
struct NodeWay {
  enum How : uint8_t { missing_kernel, kernel, decomposition, core /* no kernel is needed */, control };
  How how = missing_kernel;
  std::string engine = {};   // of the kernel
  std::string missing = {};  // the message of the kernel that is missing, perhaps deep in a decomposition
};
std::vector<NodeWay> node_ways(const Binding&, Device&);  // of each node, for the binding's sizes

inline bool is_current(const Executable& e) {
  return e.plans->is_current() && (e.arrays.empty() || e.resets == e.device().resets);
}
// Gives the values of a step that only its group has their types, for its nodes to run one by one.
void set_types_inside(const Executable&, size_t step, Values&);
// Runs node `k`, which holds no programs. `wanted`: where results are to be, if what computes them can write there.
void run_call(const Executable&, size_t k, Values&, std::span<const Wanted> wanted);
// The operands of node `k` that are given. Those that end with it are taken from `values`: if nobody else holds
// their memory, the node's programs may use it.
std::vector<Tensor> take_operands(const Executable&, size_t k, Values&);
// Runs it on operands of exactly the dtypes and shapes of the binding, which do not change meanwhile; `out` are
// other tensors. Results that are constants stay in host memory. `constants`: nullptr, or all of them, in place of
// the binding's.
void replay(const Executable&, const Tensor* const* in, Tensor* const* out,
            const std::vector<Scalar>* constants = nullptr);
// The same on operands that are given away: where nobody else holds their memory, it may be used. `given`: nullptr,
// or for each result memory of its type in which the caller wants it, or nullptr; results that are computed there
// without a copy share it.
std::vector<Tensor> replay(const Executable&, std::vector<Tensor> in, const Tensor* const* given = nullptr,
                           const std::vector<Scalar>* constants = nullptr);

// A result of a group, by the device's code for it and by its nodes one by one.
struct GroupResult {
  size_t step;  // of the fusion
  int value;
  const Tensor &of_group, &of_nodes;
};
// Runs it node by node, and each group on the operands of its nodes, too. Code that declines its operands gives no
// result.
void replay_and_compare(const Executable&, std::vector<Tensor> in, const std::vector<Scalar>* constants,
                        const std::function<void(const GroupResult&)>& compare);
}  // namespace dovetail
