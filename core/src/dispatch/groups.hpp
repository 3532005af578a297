// Groups of a program's nodes as code of the device's compiler (dvt_compiler): who claims what, the code, its runs.
#pragma once
#include <map>
#include <mutex>
#include <span>

#include "device/device.hpp"
#include "dispatch/group_views.hpp"
#include "graph/c_program.hpp"
#include "graph/part.hpp"

namespace dovetail {
struct Executable;
struct Wanted;

// The device's compiler; nullptr where it has none.
const dvt_compiler* compiler_of(const Device&);

// Code for one group. Equal groups on a device share it.
class GroupCode {
 public:
  GroupCode(Device&, const dvt_compiler&, std::unique_ptr<const CProgram>);  // throws Error where it cannot be made
  ~GroupCode();
  GroupCode(const GroupCode&) = delete;

  // Whether it runs at these sizes and strides; level 0: it does not.
  dvt_answer query(const dvt_exe_call&) const;
  dvt_status run(const dvt_exe_call& call) const { return compiler_.run(exe_, &call); }
  std::string describe() const;  // a line for the user; empty: the compiler says nothing

 private:
  Device& device_;
  const dvt_compiler& compiler_;
  const std::unique_ptr<const CProgram> program_;  // the compiler may go on to read it
  dvt_exe* exe_ = nullptr;
};

class Fusions;

// How a device runs a program in groups, for all sizes that its types describe.
struct Fusion {
  struct Group {
    Part part;
    std::vector<uint32_t> views;  // nodes of the step that inputs of the part are results of
    std::vector<int> dies;  // values that end with it, but for those that it does not make when it runs as one
    std::shared_ptr<const GroupCode> code;
    const char* name;   // "multiply+add+gelu", for profiles and messages
    std::string where;  // the user's line of its first node
  };
  struct Step {
    std::vector<uint32_t> nodes;
    std::optional<Group> group;  // else each node by itself
  };
  // Of each node the values that end with it: in the order of the steps they are others than the program's. Those
  // that end with a group are its last node's.
  std::vector<std::vector<int>> dies;
  // Why a node is in no group that has code; nullptr: nobody said.
  std::vector<const char*> reasons;
  std::vector<Step> steps;
  bool has_groups = false;
  SymbolicTypes types;
  double seconds = 0;  // that it took to make it
  uint32_t flags = 0;  // that it was made with
  // Of the programs that nodes hold, which are fused when they are bound.
  std::map<std::shared_ptr<const Program>, std::shared_ptr<Fusions>> bodies;
};

// What a binding adds to a group.
struct BoundGroup {
  std::vector<int64_t> symbols;
  dvt_answer answer;  // to row-major operands; level 0: its nodes run by themselves
  // Of each result an operand that ends with the group and whose memory it may take, if nothing else holds that;
  // -1.
  std::vector<int> donors;
  std::vector<GroupView> views;  // of its inputs; empty: none, or they are made before it runs
  dvt_answer to_views;           // the answer to these in place of row-major operands

  // The value that has input i in its memory.
  int memory_of(const Part& part, size_t i) const {
    return !views.empty() && views[i].base >= 0 ? views[i].base : part.inputs[i];
  }
};

// nullptr where the device has no compiler. `arguments`: those that the program
// was bound with. `flags`: DVT_P_ROUND_EACH, DVT_P_DETERMINISTIC.
std::shared_ptr<const Fusion> fuse(const Binding&, Device&, const Attrs* arguments, uint32_t flags);
// One for each step (empty of one without a group); nothing where the fusion's types do not describe the binding.
std::optional<std::vector<BoundGroup>> bind_groups(const Fusion&, const Binding&, Device&);

// The fusions of a program on a device: for sizes of different structure, as where some are 1, there are several.
class Fusions {
 public:
  // The one that describes the binding; nullptr: there is none, its nodes run by themselves.
  std::shared_ptr<const Fusion> find_or_make(const Binding&, Device&, const Attrs* arguments, uint32_t flags);
  std::vector<std::shared_ptr<const Fusion>> known();

 private:
  static constexpr size_t kMost = 8;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Fusion>> known_;
  bool none_ = false;  // the device has no compiler
};

// How many kernels a run of the executable launches; `fused`: with its groups, else node by node. Copies and casts
// of operands are not counted, and what nodes that hold programs do is one.
size_t count_launches(const Executable&, bool fused);
// That of a program which a node of the fusion's holds; nullptr: its nodes run by themselves.
std::shared_ptr<const Fusion> fusion_of_body(const Fusion&, const Binding& body, Device&);
// Runs step `i` of the executable's fusion as one. False: the code does not take these operands, nothing has run.
bool run_group(const Executable&, size_t i, Values&, std::span<const Wanted>);
}  // namespace dovetail
