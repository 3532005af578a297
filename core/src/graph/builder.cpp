// Programs are recorded here.
#include <algorithm>

#include "graph/control.hpp"

namespace dovetail {
Program& ProgramBuilder::program() const {
  if (program_) return *program_;
  throw Error(ErrorKind::runtime, "a traced value is used after the trace has ended: do not keep it");
}

int ProgramBuilder::input(DType dtype, std::span<const int64_t> shape) {
  TensorType t;
  t.dtype = dtype;
  t.set_shape(shape);
  const int value = add_value(std::move(t));
  program_->inputs.push_back({value, DType::none, {}});
  return value;
}

int ProgramBuilder::input(Program::Input declared, std::span<const int64_t> sizes) {
  if (declared.shape.size() > DVT_MAX_NDIM)
    throw Error(ErrorKind::value, "an input of " + std::to_string(declared.shape.size()) +
                                      " axes: expected at most " + std::to_string(DVT_MAX_NDIM));
  TensorType t;
  t.dtype = declared.dtype;
  t.set_shape(sizes);
  declared.value = add_value(std::move(t));
  program_->inputs.push_back(std::move(declared));
  std::vector<const TensorType*> types;
  for (const Program::Input& input : program_->inputs) types.push_back(&values_[size_t(input.value)]);
  if (const std::string why = misfit(*program_, types.data()); !why.empty()) {
    program_->inputs.pop_back();
    throw Error(ErrorKind::value, why);
  }
  return int(values_.size()) - 1;
}

TensorType HostArray::type() const {
  TensorType t;
  t.dtype = dtype;
  t.set_shape(shape);
  return t;
}

int ProgramBuilder::array(HostArray elements, const std::string& name) {
  for (const Program::Array& a : program().arrays)
    if (a.elements.data == elements.data && a.elements.dtype == elements.dtype &&
        a.elements.shape == elements.shape)
      return a.value;
  const auto taken = [&](const std::string& n) {
    return std::ranges::any_of(program_->arrays, [&](const Program::Array& a) { return a.name == n; });
  };
  std::string own = name.empty() ? "w" + std::to_string(program_->arrays.size()) : name;
  for (int k = 1; taken(own) || own.starts_with("__"); ++k)
    own = (name.empty() ? "w" : name) + "." + std::to_string(k);
  const int value = add_value(elements.type());
  program_->arrays.push_back({value, std::move(own), std::move(elements)});
  return value;
}

int ProgramBuilder::add_value(TensorType t) {
  values_.push_back(std::move(t));
  return program().n_values++;
}

int ProgramBuilder::argument(bool is_real, std::string name) {
  program().arguments.push_back(std::move(name));
  return number({.op = Number::attribute,
                 .is_real = is_real,
                 .a = is_real ? 1 : 0,
                 .b = int(program_->arguments.size()) - 1});
}

int ProgramBuilder::constant(const Scalar& scalar, int number) {
  program().constants.push_back({program_->n_values, scalar, number});
  return add_value(type_of(scalar));
}

void ProgramBuilder::own(const Program& part) {
  Program& p = program();
  if (parts_.insert(&part).second) p.programs.push_back(part.shared_from_this());
  p.depth = std::max(p.depth, part.depth + 1);
  if (p.depth > kMaxProgramDepth)
    throw Error(ErrorKind::value,
                "programs within programs: expected at most " + std::to_string(kMaxProgramDepth) + " levels");
}

void ProgramBuilder::own(Attrs& attrs) {
  for (dvt_attr& a : attrs.at) {
    if (a.kind == DVT_A_STR) a.v.s = program().strings.emplace_back(a.v.s, a.count).c_str();
    else if (a.kind == DVT_A_F64S) a.v.fs = program().float_lists.emplace_back(a.v.fs, a.v.fs + a.count).data();
    else if (a.kind == DVT_A_I64S && (a.v.is < attrs.ints || a.v.is >= attrs.ints + std::size(attrs.ints)))
      a.v.is = program().int_lists.emplace_back(a.v.is, a.v.is + a.count).data();
    else if (a.kind == DVT_A_PROGRAM) own(program_in(a));
  }
}

Program::Node ProgramBuilder::node_of(const Op& op, const std::vector<int>& in, uint32_t n_out, const Attrs& attrs,
                                      std::vector<Program::Slot> slots) const {
  return {.op = &op,
          .in = in,
          .out = program().n_values,
          .n_out = n_out,
          .attrs = attrs,
          .slots = std::move(slots),
          .numbers = 0,
          .dies = {},
          .where = where_};
}

int ProgramBuilder::call(const Op& op, const std::vector<int>& in, const Attrs& attrs,
                         std::vector<Program::Slot> slots) {
  Program& p = program();
  Program::Node node = node_of(op, in, op.spec.n_out, attrs, std::move(slots));
  std::vector<const TensorType*> operands;
  for (const int i : in) operands.push_back(i < 0 ? nullptr : &values_.at(size_t(i)));
  std::vector<TensorType> made(op.spec.n_out);
  Attrs normalised = attrs;
  TensorType* out[kMaxOutputs];
  for (size_t i = 0; i < made.size(); ++i) out[i] = &made[i];
  infer(op, operands.data(), int(operands.size()), normalised, out);
  own(node.attrs);
  for (TensorType& t : made) add_value(std::move(t));
  p.nodes.push_back(std::move(node));
  return p.nodes.back().out;
}

int ProgramBuilder::control(const Op& op, const std::vector<int>& in, const Attrs& attrs,
                            std::vector<Program::Slot> slots) {
  Program& p = program();
  Program::Node node = node_of(op, in, count_results(op, attrs, in.size()), attrs, std::move(slots));
  std::vector<const TensorType*> operands;
  for (const int i : in) operands.push_back(&values_.at(size_t(i)));
  own(node.attrs);
  p.nodes.push_back(std::move(node));
  try {
    BindLimits limits;
    std::string why;
    auto bound = bind_control(p, p.nodes.size() - 1, attrs, operands, limits, &why);
    if (!bound) throw Error(ErrorKind::value, "[" + op.spec.name + "] " + why);
    for (TensorType& t : bound->results) add_value(std::move(t));
  } catch (...) {
    p.nodes.pop_back();
    throw;
  }
  return p.nodes.back().out;
}

void ProgramBuilder::order_inputs(const std::vector<int>& values) {
  std::vector<Program::Input> ordered;
  for (const int v : values) {
    const auto found = std::ranges::find(program().inputs, v, &Program::Input::value);
    if (found == program().inputs.end())
      throw Error(ErrorKind::value, "value " + std::to_string(v) + " is no input of the program");
    ordered.push_back(*found);
  }
  if (ordered.size() != program().inputs.size())
    throw Error(ErrorKind::value, std::to_string(ordered.size()) + " inputs: expected all " +
                                      std::to_string(program().inputs.size()));
  program().inputs = std::move(ordered);
}

int ProgramBuilder::cast(int value, DType dtype) {
  static const Op& astype = op("astype");
  if (this->value(value).dtype == dtype) return value;
  Attrs attrs;
  attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(dtype).dl}};
  return call(astype, {value}, attrs);
}

// A size that is always the same as a literal, and one of several equal ones for all of them.
Number ProgramBuilder::known_size(Number n) const {
  const auto literal = [&] { return Number{.op = Number::integer, .i = value(n.a).size(n.b)}; };
  if (n.b < 0 || n.b >= value(n.a).rank()) return n;
  for (const Program::Array& a : program_->arrays)
    if (a.value == n.a) return literal();
  const auto own = std::ranges::find(program_->inputs, n.a, &Program::Input::value);
  if (own == program_->inputs.end() || own->dtype == DType::none) return n;
  if (own->shape[size_t(n.b)] >= 0) return literal();
  if (const std::string_view name = own->size_name(size_t(n.b)); !name.empty())
    for (const Program::Input& input : program_->inputs)
      for (size_t axis = 0; axis < input.shape.size(); ++axis)
        if (input.size_name(axis) == name) return n.a = input.value, n.b = int(axis), n;
  return n;
}

int ProgramBuilder::number(Number n) { return program(), numbers_.add(n.op == Number::size ? known_size(n) : n); }

bool ProgramBuilder::is_literal(int number) const {
  const Number::Op op = numbers_.entries()[size_t(number)].op;
  return op == Number::integer || op == Number::real;
}

void ProgramBuilder::guard(Guard::Compare compare, int a, int b) {
  Program& p = program();
  const Guard g{compare, a, b, uint32_t(p.nodes.size()), where_};
  if (guarded_.emplace(compare, a, b).second) p.guards.push_back(g);
}

void ProgramBuilder::fix(const Attrs& attrs, int n_attrs) {
  const auto pin = [&](const Number& leaf, const Number& literal) {
    guard(leaf.is_real ? Guard::same : Guard::equal, number(leaf), number(literal));
  };
  for (const Program::Input& input : program().inputs)
    for (int axis = 0; axis < value(input.value).rank(); ++axis)
      pin({.op = Number::size, .a = input.value, .b = axis},
          {.op = Number::integer, .i = value(input.value).size(axis)});
  for (int i = 0; i < n_attrs; ++i) {
    const dvt_attr& a = attrs.at[i];
    if (a.kind == DVT_A_I64) pin({.op = Number::attribute, .a = i}, {.op = Number::integer, .i = a.v.i});
    if (a.kind == DVT_A_F64)
      pin({.op = Number::attribute, .is_real = true, .a = i}, {.op = Number::real, .is_real = true, .f = a.v.f});
    if (a.kind == DVT_A_I64S)
      for (uint32_t k = 0; k < a.count; ++k)
        pin({.op = Number::attribute, .a = i, .b = int(k)}, {.op = Number::integer, .i = a.v.is[k]});
  }
}

void plan_lifetimes(Program& p) {
  std::vector<bool> needed(size_t(p.n_values), false);
  for (const int v : p.outputs) needed[size_t(v)] = true;
  for (const Program::Constant& c : p.constants) needed[size_t(c.value)] = true;
  for (const Program::Array& a : p.arrays) needed[size_t(a.value)] = true;
  for (auto node = p.nodes.rbegin(); node != p.nodes.rend(); ++node) {
    for (const int v : node->in) {
      if (v < 0 || needed[size_t(v)]) continue;
      needed[size_t(v)] = true;
      node->dies.push_back(v);
    }
    for (uint32_t i = 0; i < node->n_out; ++i)
      if (!needed[size_t(node->out) + i]) node->dies.push_back(node->out + int(i));  // an output that nothing uses
  }
}

// Leaves out the numbers that nothing needs, and notes for every node how many it and those before it need.
static void drop_unused_numbers(Program& p) {
  std::vector<int> place(p.numbers.size(), -1);
  const auto need = [&](int k) {
    if (k >= 0) place[size_t(k)] = 0;
  };
  for (const Guard& g : p.guards) need(g.a), need(g.b);
  for (const Program::Constant& c : p.constants) need(c.number);
  for (const Program::Node& node : p.nodes)
    for (const Program::Slot& slot : node.slots) need(slot.number);
  for (size_t k = place.size(); k-- > 0;)
    if (const Number& n = p.numbers[k]; place[k] == 0 && !is_leaf(n.op)) need(n.a), need(n.b);
  std::vector<Number> kept;
  for (size_t k = 0; k < place.size(); ++k) {
    if (place[k] < 0) continue;
    Number n = p.numbers[k];
    if (!is_leaf(n.op)) n.a = place[size_t(n.a)], n.b = n.b < 0 ? n.b : place[size_t(n.b)];
    place[k] = int(kept.size());
    kept.push_back(n);
  }
  p.numbers = std::move(kept);
  const auto renumber = [&](int& k) { k = k < 0 ? k : place[size_t(k)]; };
  for (Guard& g : p.guards) renumber(g.a), renumber(g.b);
  for (Program::Constant& c : p.constants) renumber(c.number);
  size_t constant = 0;
  uint32_t needed = 0;
  for (Program::Node& node : p.nodes) {
    for (Program::Slot& slot : node.slots)
      renumber(slot.number), needed = std::max(needed, uint32_t(slot.number) + 1);
    for (; constant < p.constants.size() && p.constants[constant].value < node.out; ++constant)
      needed = std::max(needed, uint32_t(p.constants[constant].number + 1));
    node.numbers = needed;
  }
}

std::shared_ptr<const Program> ProgramBuilder::finish(const std::vector<int>& outputs, std::string signature) {
  program().outputs = outputs;
  program_->signature = std::move(signature);
  program_->numbers = numbers_.take();
  drop_unused_numbers(*program_);
  plan_lifetimes(*program_);
  return std::move(program_);
}

// ---- one program in another -------------------------------------------------------------------------------------
namespace {
class Inliner {
 public:
  Inliner(ProgramBuilder& to, const Binding& bound, const InlineOptions& options)
      : to_(to),
        options_(options),
        caller_(to.where()),
        bound_(bound),
        program_(*bound.program),
        value_(size_t(program_.n_values), -1),
        number_(program_.numbers.size(), -1) {}

  ~Inliner() { to_.at(caller_); }

  std::vector<int> run(const std::vector<int>& operands) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) value_[size_t(program_.inputs[i].value)] = operands[i];
    for (size_t i = 0; i < program_.arrays.size(); ++i) {
      const Program::Array& a = program_.arrays[i];
      value_[size_t(a.value)] = options_.arrays ? options_.arrays->at(i) : to_.array(a.elements, a.name);
    }
    record_declared_sizes();
    for (size_t k = 0; k < program_.nodes.size(); ++k) {
      record_guards(k);
      record_constants(program_.nodes[k].out);
      record_node(k);
    }
    record_guards(program_.nodes.size());
    record_constants(program_.n_values);
    std::vector<int> outputs;
    for (const int v : program_.outputs) outputs.push_back(value_[size_t(v)]);
    if (options_.became) *options_.became = value_;
    return outputs;
  }

 private:
  // The attribute's value in the call, as a literal.
  Number literal(const Number& n) const {
    const dvt_attr& a = options_.attributes->at[n.a];
    if (n.is_real) return {.op = Number::real, .is_real = true, .f = a.kind == DVT_A_F64S ? a.v.fs[n.b] : a.v.f};
    return {.op = Number::integer, .i = a.kind == DVT_A_I64S ? a.v.is[n.b] : a.v.i};
  }

  int number(int k) {
    if (k < 0) return k;
    int& made = number_[size_t(k)];
    if (made >= 0) return made;
    Number n = program_.numbers[size_t(k)];
    if (n.op == Number::size) n.a = value_[size_t(n.a)];
    else if (n.op == Number::attribute && options_.attributes) n = literal(n);
    else if (!is_leaf(n.op)) n.a = number(n.a), n.b = number(n.b);
    return made = to_.number(n);
  }

  // What happens at `where`, "" where the program does not know, is attributed to that line of it.
  void at(const std::string& where) { to_.at(where.empty() ? caller_ : where); }

  void record_declared_sizes() {
    std::map<std::string_view, int> named;
    for (const Program::Input& input : program_.inputs)
      for (size_t axis = 0; axis < input.shape.size(); ++axis) {
        const std::string_view name = input.size_name(axis);
        if (input.shape[axis] < 0 && name.empty()) continue;
        const int size = to_.number({.op = Number::size, .a = value_[size_t(input.value)], .b = int(axis)});
        const int expected = name.empty() ? to_.number({.op = Number::integer, .i = input.shape[axis]})
                                          : named.try_emplace(name, size).first->second;
        if (size != expected) to_.guard(Guard::equal, size, expected);
      }
  }

  void record_guards(size_t node) {
    for (; guard_ < program_.guards.size() && program_.guards[guard_].at <= node; ++guard_) {
      const Guard& g = program_.guards[guard_];
      const int a = number(g.a), b = number(g.b);
      if (options_.attributes && to_.is_literal(a) && to_.is_literal(b)) continue;  // it holds in the binding
      at(g.where);
      to_.guard(g.compare, a, b);
    }
  }

  void record_constants(int end) {
    for (; constant_ < program_.constants.size() && program_.constants[constant_].value < end; ++constant_) {
      const Program::Constant& c = program_.constants[constant_];
      value_[size_t(c.value)] = to_.constant(bound_.constant(constant_), number(c.number));
    }
  }

  void record_node(size_t k) {
    const Program::Node& node = program_.nodes[k];
    std::vector<int> in;
    for (const int v : node.in) in.push_back(v < 0 ? v : value_[size_t(v)]);
    at(node.where);
    if (const auto results = options_.replace ? options_.replace(k, in, value_) : std::nullopt) {
      std::ranges::copy(*results, value_.begin() + node.out);
      return;
    }
    std::vector<Program::Slot> slots = node.slots;
    for (Program::Slot& slot : slots) slot.number = number(slot.number);
    const Attrs attrs = filled_attrs(program_, node, bound_.numbers);
    const int out = node.op->spec.flags & op_control ? to_.control(*node.op, in, attrs, std::move(slots))
                                                     : to_.call(*node.op, in, attrs, std::move(slots));
    for (uint32_t i = 0; i < node.n_out; ++i) value_[size_t(node.out) + i] = out + int(i);
  }

  ProgramBuilder& to_;
  const InlineOptions& options_;
  const std::string caller_;
  const Binding& bound_;
  const Program& program_;
  std::vector<int> value_, number_;  // what they are in the other program
  size_t guard_ = 0, constant_ = 0;
};
}  // namespace

std::vector<int> record_inline(ProgramBuilder& to, const Binding& bound, const std::vector<int>& operands,
                               const InlineOptions& options) {
  return Inliner(to, bound, options).run(operands);
}
}  // namespace dovetail
