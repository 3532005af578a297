#include "graph/symbols.hpp"

#include <algorithm>
#include <map>

namespace dovetail {
namespace {
using Type = SymbolicTypes::Type;

Type type_of_constant(const Program::Constant& c) { return {c.scalar.dtype, 0, {}}; }

// Axes of inputs that always have one size.
struct Free {
  std::vector<std::pair<int, int>> places;  // input, axis
  int64_t hint;
};

class Prober {
  static constexpr size_t kMostAlone = 16;  // axes that are tried one by one

 public:
  Prober(const Binding& hints, const Attrs* attrs) : hints_(hints), program_(*hints.program), attrs_(attrs) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Program::Input& input = program_.inputs[i];
      const TensorType& t = hints_.values[size_t(input.value)];
      inputs_.push_back(t);
      for (int axis = 0; axis < t.rank(); ++axis)
        if (input.dtype == DType::none || input.shape[size_t(axis)] < 0)
          if (t.size(axis) != 1) add_free(int(i), axis, t.size(axis));
    }
  }

  SymbolicTypes run() {
    // An axis that can change alone is independent of the others. Those of one size that cannot are taken as equal,
    // and so are those behind the first ones, which are weights more often than not.
    std::map<int64_t, Free> rest;
    for (size_t i = 0; i < free_.size(); ++i) {
      const int64_t h = free_[i].hint;
      if (i < kMostAlone && move(free_[i], {h + 1, 2 * h})) continue;
      Free& group = rest.try_emplace(h, Free{{}, h}).first->second;
      group.places.insert(group.places.end(), free_[i].places.begin(), free_[i].places.end());
    }
    for (const auto& [h, group] : rest) move(group, {h + 1, h + 3, 2 * h, h + 8, h + 64, h - 1});
    return types();
  }

 private:
  // Axes whose sizes have one name move together.
  void add_free(int input, int axis, int64_t hint) {
    const std::string_view name = program_.inputs[size_t(input)].size_name(size_t(axis));
    const auto [known, fresh] = named_.try_emplace(name, free_.size());
    if (name.empty() || fresh) free_.push_back({{}, hint});
    Free& group = name.empty() ? free_.back() : free_[known->second];
    group.places.emplace_back(input, axis);
  }

  // Binds the program with another size there and keeps the result; false where none of `sizes` is legal.
  bool move(const Free& group, std::initializer_list<int64_t> sizes) {
    for (const int64_t size : sizes) {
      if (size < 2 || size == group.hint) continue;
      std::vector<TensorType> inputs = inputs_;
      for (const auto& [input, axis] : group.places) inputs[size_t(input)].size(axis) = size;
      if (auto bound = bind(inputs)) {
        probes_.push_back(std::move(bound->values));
        return true;
      }
    }
    return false;
  }

  std::optional<Binding> bind(std::vector<TensorType>& inputs) const {
    std::vector<const TensorType*> operands;
    try {
      for (TensorType& t : inputs) {
        const TensorType moved = t;
        t.set_shape(moved.shape());
        operands.push_back(&t);
      }
      auto bound = bind_program(hints_.program, operands.data(), attrs_);
      const auto same_kind = [](const TensorType& a, const TensorType& b) {
        return a.dtype == b.dtype && a.rank() == b.rank();
      };
      if (!bound || !std::ranges::equal(bound->values, hints_.values, same_kind)) return std::nullopt;
      return bound;
    } catch (const Error&) {  // a rule refuses these sizes
      return std::nullopt;
    }
  }

  SymbolicTypes types() {
    SymbolicTypes made;
    made.complete = true;
    made.values.resize(hints_.values.size());
    for (size_t i = 0; i < program_.inputs.size(); ++i) describe(made, program_.inputs[i].value, int(i));
    for (size_t v = 0; v < made.values.size(); ++v)
      if (made.values[v].rank < 0) describe(made, int(v), -1);
    return made;
  }

  void describe(SymbolicTypes& made, int value, int input) {
    const TensorType& t = hints_.values[size_t(value)];
    Type& type = made.values[size_t(value)];
    type = {t.dtype, t.rank(), {}};
    for (int axis = 0; axis < t.rank(); ++axis) {
      std::vector<int64_t> sizes{t.size(axis)};  // in the hints and in each probe
      for (const auto& values : probes_) sizes.push_back(values[size_t(value)].size(axis));
      if (std::ranges::count(sizes, sizes[0]) == std::ssize(sizes)) {
        type.shape.push_back(sizes[0]);
        continue;
      }
      const auto [found, fresh] = symbol_.try_emplace(std::move(sizes), int(made.symbols.size()));
      if (fresh) made.symbols.push_back({t.size(axis), input, input < 0 ? -1 : axis});
      if (input >= 0 && made.symbols[size_t(found->second)].name.empty())
        made.symbols[size_t(found->second)].name = program_.inputs[size_t(input)].size_name(size_t(axis));
      type.shape.push_back(-1 - found->second);
    }
  }

  const Binding& hints_;
  const Program& program_;
  const Attrs* attrs_;
  std::vector<TensorType> inputs_;
  std::vector<Free> free_;
  std::map<std::string_view, size_t> named_;  // places in free_
  std::vector<std::vector<TensorType>> probes_;
  std::map<std::vector<int64_t>, int> symbol_;  // by the sizes of an axis in all bindings
};
}  // namespace

SymbolicTypes declared_types(const Program& p) {
  SymbolicTypes made;
  made.values.resize(size_t(p.n_values));
  for (const Program::Constant& c : p.constants) made.values[size_t(c.value)] = type_of_constant(c);
  for (const Program::Array& a : p.arrays)
    made.values[size_t(a.value)] = {a.elements.dtype, int(a.elements.shape.size()), a.elements.shape};
  std::map<std::string_view, int64_t> named;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const Program::Input& input = p.inputs[i];
    if (input.dtype == DType::none) continue;
    Type& type = made.values[size_t(input.value)];
    type = {input.dtype, int(input.shape.size()), input.shape};
    for (size_t axis = 0; axis < input.shape.size(); ++axis) {
      if (input.shape[axis] >= 0) continue;
      const std::string_view name = input.size_name(axis);
      const auto fresh = int64_t(made.symbols.size());
      const int64_t symbol = name.empty() ? fresh : named.try_emplace(name, fresh).first->second;
      type.shape[axis] = -1 - symbol;
      if (symbol == fresh) made.symbols.push_back({-1, int(i), int(axis), name});
    }
  }
  return made;
}

SymbolicTypes symbolic_types(const Binding& hints, const Attrs* attrs) { return Prober(hints, attrs).run(); }

std::optional<std::vector<int64_t>> symbols_in(const SymbolicTypes& types, const Binding& bound) {
  std::vector<int64_t> sizes(types.symbols.size(), -1);
  for (size_t v = 0; v < types.values.size(); ++v) {
    const Type& type = types.values[v];
    const TensorType& t = bound.values[v];
    if (type.rank < 0) continue;
    if (type.dtype != t.dtype || type.rank != t.rank()) return std::nullopt;
    for (int axis = 0; axis < t.rank(); ++axis) {
      const int64_t d = type.shape[size_t(axis)];
      if (d >= 0) {
        if (d != t.size(axis)) return std::nullopt;
        continue;
      }
      int64_t& size = sizes[size_t(-1 - d)];
      if (size >= 0 && size != t.size(axis)) return std::nullopt;
      size = t.size(axis);
    }
  }
  return sizes;
}
}  // namespace dovetail
