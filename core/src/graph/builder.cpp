// Programs are recorded here.
#include <algorithm>

#include "graph/program.hpp"

namespace dovetail {
Program& ProgramBuilder::program() const {
  if (program_) return *program_;
  throw Error(ErrorKind::runtime, "a traced value is used after the trace has ended: do not keep it");
}

int ProgramBuilder::input(DType dtype, std::span<const int64_t> shape) {
  Tensor t;
  t.set_type(dtype, nullptr);
  t.set_shape(shape);
  program().values.push_back(std::move(t));
  program().inputs.push_back(int(program().values.size()) - 1);
  return program().inputs.back();
}

int ProgramBuilder::constant(const Tensor& host_scalar, int number) {
  Program& p = program();
  p.values.push_back(host_scalar);
  p.constants.push_back({int(p.values.size()) - 1, host_scalar, number});
  return p.constants.back().value;
}

void ProgramBuilder::own(Attrs& attrs) {
  for (dvt_attr& a : attrs.at) {
    if (a.kind == DVT_A_STR) a.v.s = program().strings.emplace_back(a.v.s, a.count).c_str();
    else if (a.kind == DVT_A_F64S) a.v.fs = program().float_lists.emplace_back(a.v.fs, a.v.fs + a.count).data();
    else if (a.kind == DVT_A_I64S && (a.v.is < attrs.ints || a.v.is >= attrs.ints + std::size(attrs.ints)))
      a.v.is = program().int_lists.emplace_back(a.v.is, a.v.is + a.count).data();
  }
}

int ProgramBuilder::call(const Op& op, const std::vector<int>& in, const Attrs& attrs,
                         std::vector<Program::Slot> slots) {
  Program& p = program();
  Program::Node node{.op = &op,
                     .in = in,
                     .out = int(p.values.size()),
                     .attrs = attrs,
                     .slots = std::move(slots),
                     .numbers = uint32_t(numbers_.entries().size()),
                     .dies = {}};
  std::vector<const Tensor*> operands;
  for (const int i : in) operands.push_back(i < 0 ? nullptr : &p.values.at(size_t(i)));
  std::vector<Tensor> made(op.spec.n_out);
  Attrs normalised = attrs;
  Invocation inv{
      .op = op, .device = nullptr, .in = operands.data(), .n_in = int(operands.size()), .attrs = normalised};
  for (size_t i = 0; i < made.size(); ++i) inv.out[i] = &made[i];
  Plan plan;
  inv.infer_abstract(plan);
  own(node.attrs);
  std::ranges::move(made, std::back_inserter(p.values));
  p.nodes.push_back(std::move(node));
  return p.nodes.back().out;
}

int ProgramBuilder::cast(int value, DType dtype) {
  static const Op& astype = op("astype");
  if (this->value(value).dtype == dtype) return value;
  Attrs attrs;
  attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(dtype).dl}};
  return call(astype, {value}, attrs);
}

int ProgramBuilder::number(Number n) { return program(), numbers_.add(n); }

void ProgramBuilder::guard(Guard::Compare compare, int a, int b) {
  Program& p = program();
  const Guard g{compare, a, b, uint32_t(p.nodes.size())};
  const auto known = [&](const Guard& other) { return other.compare == compare && other.a == a && other.b == b; };
  if (std::ranges::none_of(p.guards, known)) p.guards.push_back(g);
}

void ProgramBuilder::fix(const Attrs& attrs, int n_attrs) {
  const auto pin = [&](const Number& leaf, const Number& literal) {
    guard(Guard::equal, number(leaf), number(literal));
  };
  for (const int v : program().inputs)
    for (int axis = 0; axis < value(v).rank(); ++axis)
      pin({.op = Number::size, .a = v, .b = axis}, {.op = Number::integer, .i = value(v).size(axis)});
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

// Notes for every node which values end with it, and whose memory the result may take. Equal shapes of the trace need
// not be equal in every binding: the memory is taken only where they are.
static void plan_lifetimes(Program& p) {
  std::vector<bool> needed(p.values.size(), false);
  for (const int v : p.outputs) needed[size_t(v)] = true;
  for (const int v : p.inputs) needed[size_t(v)] = true;  // the caller's
  for (const Program::Constant& c : p.constants) needed[size_t(c.value)] = true;
  for (auto node = p.nodes.rbegin(); node != p.nodes.rend(); ++node) {
    for (const int v : node->in) {
      if (v < 0 || needed[size_t(v)]) continue;
      needed[size_t(v)] = true;
      node->dies.push_back(v);
    }
    for (uint32_t i = 0; i < node->op->spec.n_out; ++i)
      if (!needed[size_t(node->out) + i]) node->dies.push_back(node->out + int(i));  // an output nobody looks at
    const Tensor& out = p.values[size_t(node->out)];
    for (const int v : node->in)
      if (node->donor < 0 && v >= 0 && std::ranges::count(node->dies, v) &&
          p.values[size_t(v)].dtype == out.dtype && p.values[size_t(v)].rank() == out.rank())
        node->donor = v;
  }
}

std::shared_ptr<const Program> ProgramBuilder::finish(const std::vector<int>& outputs) {
  program().outputs = outputs;
  program_->numbers = numbers_.take();
  plan_lifetimes(*program_);
  return std::move(program_);
}
}  // namespace dovetail
