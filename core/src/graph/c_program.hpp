// A program as C sees it: the dvt_program of abi.h.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "graph/symbols.hpp"

namespace dovetail {
// Owns what its dvt_program points to, and shares the program.
class CProgram {
 public:
  // As it is written: types of inputs and constants only.
  explicit CProgram(std::shared_ptr<const Program>);
  // With the types of all values (DVT_P_TYPED), for sizes like those of the binding; see symbolic_types().
  CProgram(const Binding& hints, const Attrs* attrs);
  // With these types. `flags`: DVT_P_ROUND_EACH, DVT_P_DETERMINISTIC. `has_hash`: whether the hash is made, which
  // takes as long as all else.
  CProgram(std::shared_ptr<const Program>, SymbolicTypes, uint32_t flags = 0, bool has_hash = true);
  CProgram(const CProgram&) = delete;
  CProgram& operator=(const CProgram&) = delete;

  const dvt_program& view() const { return view_; }
  const SymbolicTypes& types() const { return types_; }

 private:
  void number_values();
  void describe_values();
  void describe_symbols();
  void describe_numbers();
  void describe_guards();
  void describe_nodes();
  void set_hash();
  dvt_attr attribute(const Program::Node&, int attr);
  int64_t literal(int64_t);  // its entry of `numbers`
  const uint32_t* indices(const std::vector<int>& values);

  std::shared_ptr<const Program> program_;
  SymbolicTypes types_;
  std::unordered_map<const Program*, std::unique_ptr<const CProgram>> parts_;  // of control nodes, as written
  std::vector<uint32_t> place_;  // of each value of the program: its number in the view
  std::vector<DLTensor> values_;
  std::vector<dvt_value> info_;
  std::vector<dvt_symbol> symbols_;
  std::vector<dvt_number> numbers_;
  std::unordered_map<int64_t, int64_t> literals_;  // and their entries
  std::vector<dvt_guard> guards_;
  std::vector<dvt_node> nodes_;
  std::vector<const dvt_node*> node_list_;
  std::deque<std::vector<dvt_attr>> attrs_;
  std::deque<std::vector<uint32_t>> indices_;
  std::deque<std::vector<int64_t>> int_lists_;
  dvt_program view_ = {};
};

// The view of a program as it is written, made when it is first asked for; by any thread.
class LazyCProgram {
 public:
  const dvt_program* of(const std::shared_ptr<const Program>& program) const {
    const std::lock_guard lock(mutex_);
    if (!made_) made_ = std::make_unique<const CProgram>(program);
    return &made_->view();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const CProgram> made_;
};
}  // namespace dovetail
