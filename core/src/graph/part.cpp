#include "graph/part.hpp"

#include <algorithm>
#include <unordered_map>

namespace dovetail {
namespace {
class Extractor {
 public:
  Extractor(const Binding& whole, const SymbolicTypes& types, const Schedule::Step& step)
      : whole_(whole), program_(*whole.program), types_(types), step_(step) {}

  Part run() {
    std::vector<int> inside;  // values of the whole, in order
    for (const uint32_t k : step_.nodes)
      for (uint32_t i = 0; i < program_.nodes[k].n_out; ++i) inside.push_back(program_.nodes[k].out + int(i));
    for (const uint32_t k : step_.nodes)
      for (const int v : program_.nodes[k].in)
        if (v >= 0 && !std::ranges::binary_search(inside, v)) take(v);
    for (const uint32_t k : step_.nodes) record(program_.nodes[k]);
    std::vector<int> outputs;
    for (const int v : step_.results) outputs.push_back(value_.at(v));
    part_.outputs = step_.results;
    part_.program = builder_.finish(outputs);
    describe();
    return std::move(part_);
  }

 private:
  const TensorType& type(int v) const { return whole_.values[size_t(v)]; }

  void take(int v) {
    if (value_.contains(v)) return;
    const auto& constants = program_.constants;
    const auto constant = std::ranges::lower_bound(constants, v, {}, &Program::Constant::value);
    const bool is_constant = constant != constants.end() && constant->value == v;
    if (is_constant && constant->number < 0) {
      value_[v] = builder_.constant(constant->scalar);
      return;
    }
    Program::Input declared{.value = -1, .dtype = type(v).dtype, .shape = {}, .is_scalar = is_constant};
    for (const int64_t d : types_.values[size_t(v)].shape) declared.shape.push_back(std::max<int64_t>(d, -1));
    value_[v] = builder_.input(std::move(declared), type(v).shape());
    part_.inputs.push_back(v);
  }

  void record(const Program::Node& node) {
    std::vector<int> in;
    for (const int v : node.in) in.push_back(v < 0 ? v : value_.at(v));
    builder_.at(node.where);
    const int out = builder_.call(*node.op, in, node.attrs);
    for (uint32_t i = 0; i < node.n_out; ++i) value_[node.out + int(i)] = out + int(i);
  }

  // Types of the part's values, with its symbols numbered as they appear: equal parts are equal text.
  void describe() {
    part_.types.complete = true;
    part_.types.values.resize(size_t(part_.program->n_values));
    std::vector<std::pair<int, int>> in_order;  // values of the part, and of the whole
    for (const auto& [outer, own] : value_) in_order.emplace_back(own, outer);
    std::ranges::sort(in_order);
    std::unordered_map<int64_t, int64_t> known;
    for (const auto& [own, outer] : in_order) {
      SymbolicTypes::Type type = types_.values[size_t(outer)];
      const auto place = std::ranges::find(part_.program->inputs, own, &Program::Input::value);
      const bool is_input = place != part_.program->inputs.end();
      for (size_t axis = 0; axis < type.shape.size(); ++axis) {
        int64_t& d = type.shape[axis];
        if (d >= 0) continue;
        const auto [found, fresh] = known.try_emplace(-1 - d, int64_t(known.size()));
        if (fresh) {
          part_.symbols.push_back(-1 - d);
          part_.types.symbols.push_back({types_.symbols[size_t(-1 - d)].hint,
                                         is_input ? int(place - part_.program->inputs.begin()) : -1,
                                         is_input ? int(axis) : -1});
        }
        d = -1 - found->second;
      }
      part_.types.values[size_t(own)] = std::move(type);
    }
  }

  const Binding& whole_;
  const Program& program_;
  const SymbolicTypes& types_;
  const Schedule::Step& step_;
  ProgramBuilder builder_;
  std::unordered_map<int, int> value_;  // by value of the whole, what it is in the part
  Part part_;
};
}  // namespace

Part part_of(const Binding& whole, const SymbolicTypes& types, const Schedule::Step& step) {
  return Extractor(whole, types, step).run();
}
}  // namespace dovetail
