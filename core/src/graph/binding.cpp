// The sizes of one call, followed through a program by the rules.
#include <algorithm>

#include "graph/control.hpp"
#include "graph/explain.hpp"
#include "rules/rules.hpp"

namespace dovetail {
namespace {
// Puts the numbers of a binding into the slots of a node's attributes.
void fill_slots(const Program& p, const Program::Node& node, const std::vector<NumberValue>& numbers,
                Attrs& attrs) {
  for (const Program::Slot& slot : node.slots) {
    const Number& n = p.numbers[size_t(slot.number)];
    const NumberValue v = numbers[size_t(slot.number)];
    dvt_attr& a = attrs.at[slot.attr];
    if (slot.element >= 0) {
      if (a.v.is < attrs.ints || a.v.is >= attrs.ints + std::size(attrs.ints))
        attrs.set_ints(slot.attr, attrs.i64s(slot.attr));
      const_cast<int64_t*>(a.v.is)[slot.element] = v.i;  // it points into attrs.ints, which is not const
    } else if (a.kind == DVT_A_F64) {
      a.v.f = as_real(n, v);
    } else {
      a.v.i = v.i;
    }
  }
}

thread_local std::vector<TensorType> spare_values;  // empty, with memory
thread_local std::vector<NumberValue> spare_numbers;

class Binder {
 public:
  Binder(std::shared_ptr<const Program> program, const Attrs* attrs, const NodeDTypes* dtypes, BindLimits& limits,
         std::string* why)
      : program_(*program), attrs_(attrs), dtypes_(dtypes), limits_(limits), why_(why) {
    values_.swap(spare_numbers);
    values_.resize(program->numbers.size());
    limits_.nodes += program_.nodes.size() + 1;
    if (limits_.nodes > BindLimits::kMostNodes)
      throw Error(ErrorKind::value, "a program with more than " + std::to_string(BindLimits::kMostNodes) +
                                        " nodes in all rounds of its loops: expected fewer rounds");
    made_.program = std::move(program);
    made_.nodes.resize(program_.nodes.size());
    made_.values.swap(spare_values);
    made_.values.resize(size_t(program_.n_values));
  }

  std::optional<Binding> run(const TensorType* const* inputs) {
    if (std::string why = misfit(program_, inputs); !why.empty()) {
      if (why_) *why_ = std::move(why);
      return std::nullopt;
    }
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Program::Input& input = program_.inputs[i];
      TensorType& t = made_.values[size_t(input.value)];
      t.dtype = inputs[i]->dtype;
      t.set_shape(inputs[i]->shape());
    }
    for (const Program::Array& a : program_.arrays) made_.values[size_t(a.value)] = a.elements.type();
    for (const Program::Constant& c : program_.constants) {
      made_.values[size_t(c.value)] = type_of(c.scalar);
    }
    for (size_t k = 0; k < program_.nodes.size(); ++k) {
      if (!guards_hold(k) || !know(program_.nodes[k].numbers)) return std::nullopt;
      if (program_.nodes[k].op->spec.flags & op_control) {
        if (!bind_programs(k)) return std::nullopt;
      } else {
        infer(k);
      }
    }
    if (!guards_hold(program_.nodes.size()) || !know(program_.numbers.size())) return std::nullopt;
    set_constants(program_.n_values);
    made_.numbers = std::move(values_);
    return std::move(made_);
  }

 private:
  static bool has_attrs(const Program::Node& node) { return node.op->n_attr > 0; }

  // The program's own where the rule changed nothing, or those of an earlier binding. Lists of views are kept:
  // views write to theirs again.
  const Attrs* kept(const Program::Node& node, const Attrs& attrs, const Attrs* known) {
    if (!has_attrs(node)) return &Binding::no_attrs;
    const bool is_view = node.op->spec.flags & op_view;
    const auto same = [&](const Attrs& others, bool lists) {
      for (int i = 0; i < node.op->n_attr; ++i)
        if ((!lists && attrs.at[i].kind == DVT_A_I64S) || !same_value(attrs.at[i], others.at[i])) return false;
      return true;
    };
    if (same(node.attrs, false)) return &node.attrs;
    if (known && same(*known, !is_view)) return known;
    return made_.attrs.emplace_back(std::make_unique<Attrs>(attrs)).get();
  }

  bool guards_hold(size_t node) {
    for (; guard_ < program_.guards.size() && program_.guards[guard_].at <= node; ++guard_) {
      const Guard& g = program_.guards[guard_];
      if (!know(size_t(std::max(g.a, g.b)) + 1)) return false;
      if (!holds(g, program_.numbers, values_)) {
        if (why_) *why_ = broken(program_, g, values_);
        return false;
      }
    }
    return true;
  }

  // Computes the first n entries of the table; false where one has no value.
  bool know(size_t n) {
    for (; known_ < n; ++known_) {
      const auto v = value_of(program_.numbers[known_]);
      if (!v) {
        if (why_) *why_ = text_of(program_, int(known_), 0) + " has no value for these sizes and numbers";
        return false;
      }
      values_[known_] = *v;
    }
    return true;
  }

  std::optional<NumberValue> value_of(const Number& n) {
    if (n.op == Number::size) {
      const TensorType& t = made_.values[size_t(n.a)];
      if (n.b >= t.rank()) return std::nullopt;
      return NumberValue{t.size(n.b), 0};
    }
    if (n.op != Number::attribute) return evaluate(n, program_.numbers, values_);
    if (!attrs_ || n.a >= kMaxAttrs) return std::nullopt;
    const dvt_attr& a = attrs_->at[n.a];
    if (a.kind == DVT_A_I64S && n.b >= 0 && uint32_t(n.b) < a.count) return NumberValue{a.v.is[n.b], 0};
    if (a.kind == DVT_A_F64S && n.is_real && n.b >= 0 && uint32_t(n.b) < a.count)
      return NumberValue{0, a.v.fs[n.b]};
    if (n.b < 0 && a.kind == (n.is_real ? DVT_A_F64 : DVT_A_I64))
      return n.is_real ? NumberValue{0, a.v.f} : NumberValue{a.v.i, 0};
    return std::nullopt;
  }

  // Those among the values before `end`. Not earlier: guards in between say whether the numbers fit their dtypes.
  void set_constants(int end) {
    for (; constant_ < program_.constants.size() && program_.constants[constant_].value < end; ++constant_) {
      const Program::Constant& c = program_.constants[constant_];
      if (c.number < 0) continue;
      if (made_.constants.empty()) copy_constants();
      made_.constants[constant_] =
          constant_of(c.scalar.dtype, program_.numbers[size_t(c.number)], values_[size_t(c.number)]);
    }
  }

  void copy_constants() {
    made_.constants.reserve(program_.constants.size());
    for (const Program::Constant& c : program_.constants) made_.constants.push_back(c.scalar);
  }

  void infer(size_t k) {
    const Program::Node& node = program_.nodes[k];
    set_constants(node.out);
    Binding::Node& made = made_.nodes[k];
    made_.steps += 1;
    Attrs attrs;
    if (has_attrs(node)) attrs = node.attrs, fill_slots(program_, node, values_, attrs);
    const TensorType* few[kMaxInputs];
    std::vector<const TensorType*> many;
    const TensorType** in = few;
    if (node.in.size() > kMaxInputs) many.resize(node.in.size()), in = many.data();
    for (size_t i = 0; i < node.in.size(); ++i)
      in[i] = node.in[i] < 0 ? nullptr : &made_.values[size_t(node.in[i])];
    TensorType* out[kMaxOutputs];
    for (uint32_t i = 0; i < node.op->spec.n_out; ++i) out[i] = &made_.values[size_t(node.out) + i];
    NodeDTypes own;
    const NodeDTypes& dtypes = dtypes_ ? dtypes_[k] : own;
    Inference call{*node.op, in, int(node.in.size()), attrs, dtypes.compute, dtypes.result, out};
    if (!dtypes_) rules::infer_dtypes(call, own.compute, own.result);
    call.infer_shapes();
    made.work = call.work;
    made.attrs = kept(node, attrs, dtypes.attrs);
  }

  bool bind_programs(size_t k) {
    const Program::Node& node = program_.nodes[k];
    set_constants(node.out);
    Binding::Node& made = made_.nodes[k];
    made.attrs = kept(node, filled_attrs(program_, node, values_), nullptr);
    std::vector<const TensorType*> in;
    for (const int v : node.in) in.push_back(&made_.values[size_t(v)]);
    auto bound = bind_control(program_, k, *made.attrs, in, limits_, why_);
    if (!bound) return false;
    made.work = 0;
    made_.programs.emplace(k, std::move(bound->programs));
    made_.steps += bound->steps;
    std::ranges::move(bound->results, made_.values.begin() + node.out);
    return true;
  }

  const Program& program_;
  const Attrs* attrs_;
  const NodeDTypes* const dtypes_;
  BindLimits& limits_;
  std::string* why_;
  Binding made_;
  std::vector<NumberValue> values_;
  size_t known_ = 0, guard_ = 0, constant_ = 0;
};
}  // namespace

const Attrs Binding::no_attrs;

Scalar constant_of(DType dtype, const Number& n, NumberValue v) {
  const Scalar scalar = cast_scalar(n.is_real ? Scalar(DType::f64, &v.f) : Scalar(DType::i64, &v.i), dtype);
  if (!n.is_real && is_integer(dtype)) {
    const auto back = cast_scalar(scalar, DType::i64).read<int64_t>();
    if (back != v.i || (v.i < 0 && info(dtype).kind == DKind::unsigned_int))
      throw Error(ErrorKind::value, std::to_string(v.i) + " does not fit in " + info(dtype).name +
                                        ": expected a smaller number, or arrays of a wider dtype");
  }
  return scalar;
}

void give_back_memory(Binding& b) {
  constexpr size_t kMost = 256;  // a thread keeps no more than about 75 KB
  b.values.clear(), b.numbers.clear();
  if (b.values.capacity() <= kMost) spare_values.swap(b.values);
  if (b.numbers.capacity() <= kMost) spare_numbers.swap(b.numbers);
  b.values = {}, b.numbers = {};
}

Attrs filled_attrs(const Program& p, const Program::Node& node, const std::vector<NumberValue>& numbers) {
  Attrs attrs = node.attrs;
  fill_slots(p, node, numbers, attrs);
  return attrs;
}

std::optional<Binding> bind_program(std::shared_ptr<const Program> program, const TensorType* const* inputs,
                                    const Attrs* attrs, const NodeDTypes* dtypes, std::string* why) {
  BindLimits limits;
  return Binder(std::move(program), attrs, dtypes, limits, why).run(inputs);
}

std::optional<Binding> bind_nested(std::shared_ptr<const Program> program, const TensorType* const* inputs,
                                   const Attrs* attrs, BindLimits& limits, std::string* why) {
  return Binder(std::move(program), attrs, nullptr, limits, why).run(inputs);
}
}  // namespace dovetail
