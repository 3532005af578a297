// Forms are matched from their last node back. Operands of ops that commute are tried in both orders; a form has
// few of them. Attributes are compared as the rules normalise them.
#include "graph/raise.hpp"

#include <algorithm>
#include <cmath>

namespace dovetail {
namespace {
bool commutes(const Op& op) {
  return op.spec.name == "add" || op.spec.name == "multiply" || op.spec.name == "maximum" ||
         op.spec.name == "minimum";
}

// The node that makes each value, -1: none; the constant that it is, -1: none.
struct Makers {
  explicit Makers(const Program& p) : node(size_t(p.n_values), -1), constant(size_t(p.n_values), -1) {
    for (size_t k = 0; k < p.nodes.size(); ++k)
      for (uint32_t i = 0; i < p.nodes[k].n_out; ++i) node[size_t(p.nodes[k].out) + i] = int(k);
    for (size_t i = 0; i < p.constants.size(); ++i) constant[size_t(p.constants[i].value)] = int(i);
  }
  std::vector<int> node, constant;
};

double real_of(const Scalar& s) { return cast_scalar(s, DType::f64).read<double>(); }

// A form against nodes of a program, one root after the other.
class Match {
 public:
  Match(const Form& form, const Binding& in, const Makers& made)
      : form_(form),
        pattern_(*form.written.program),
        in_(in),
        made_(made),
        values_(size_t(form.written.program->n_values), -1),
        marks_(form.marks.size(), std::nan("")) {}

  const Op* root() const {
    const Program& p = *form_.written.program;
    return p.nodes[size_t(pattern_.node[size_t(p.outputs[0])])].op;
  }

  std::optional<Raised> at(size_t root) {
    std::optional<Raised> found;
    if (value(form_.written.program->outputs[0], in_.program->nodes[root].out)) found = raised(root);
    undo({});
    return found;
  }

 private:
  // What is known of the form's values and marks, in the order in which it was found out.
  struct Known {
    size_t values = 0, marks = 0, nodes = 0;
  };
  Known known() const { return {found_values_.size(), found_marks_.size(), nodes_.size()}; }
  void undo(const Known& to) {
    for (; found_values_.size() > to.values; found_values_.pop_back()) values_[size_t(found_values_.back())] = -1;
    for (; found_marks_.size() > to.marks; found_marks_.pop_back()) marks_[found_marks_.back()] = std::nan("");
    nodes_.resize(to.nodes);
  }
  void set(int theirs, int ours) {
    values_[size_t(theirs)] = ours;
    found_values_.push_back(theirs);
  }

  std::optional<Raised> raised(size_t root) const {
    Raised found{&form_, root, nodes_, {}, marks_};
    for (const Program::Input& input : form_.written.program->inputs) {
      const int v = values_[size_t(input.value)];
      const TensorType &ours = in_.values[size_t(v)], &theirs = form_.written.values[size_t(input.value)];
      if (ours.rank() != theirs.rank()) return std::nullopt;
      found.operands.push_back(v);
    }
    std::ranges::sort(found.nodes);
    found.nodes.erase(std::ranges::unique(found.nodes).begin(), found.nodes.end());
    return found;
  }

  bool value(int theirs, int ours) {
    if (theirs < 0 || ours < 0) return theirs == ours;
    if (const int before = values_[size_t(theirs)]; before >= 0) return before == ours;
    const int their_node = pattern_.node[size_t(theirs)], their_constant = pattern_.constant[size_t(theirs)];
    if (their_constant >= 0 && !constant(their_constant, made_.constant[size_t(ours)])) return false;
    if (their_node >= 0) {
      const int our_node = made_.node[size_t(ours)];
      if (our_node < 0 || !node(size_t(their_node), size_t(our_node))) return false;
      const int offset = theirs - form_.written.program->nodes[size_t(their_node)].out;
      if (ours - in_.program->nodes[size_t(our_node)].out != offset) return false;
    }
    set(theirs, ours);
    return true;
  }

  bool constant(int theirs, int ours) {
    if (ours < 0 || in_.program->constants[size_t(ours)].number >= 0) return false;
    const Scalar &their = form_.written.constant(size_t(theirs)), &our = in_.constant(size_t(ours));
    const double wanted = real_of(their), got = real_of(our);
    for (size_t m = 0; m < form_.marks.size(); ++m) {
      if (form_.marks[m] != wanted) continue;
      if (std::isnan(marks_[m])) marks_[m] = got, found_marks_.push_back(m);
      return marks_[m] == got && std::isfinite(got) && got != 0;
    }
    return real_of(cast_scalar(their, our.dtype)) == got;
  }

  bool node(size_t theirs, size_t ours) {
    const Program::Node &a = form_.written.program->nodes[theirs], &b = in_.program->nodes[ours];
    if (a.op != b.op || a.in.size() != b.in.size() || !b.slots.empty()) return false;
    for (int i = 0; i < a.op->n_attr; ++i)
      if (!same_value(form_.written.nodes[theirs].attrs->at[i], in_.nodes[ours].attrs->at[i])) return false;
    const Known before = known();
    const auto all = [&](bool turned) {
      for (size_t i = 0; i < a.in.size(); ++i)
        if (!value(a.in[i], b.in[turned ? a.in.size() - 1 - i : i])) return false;
      nodes_.push_back(ours);
      return true;
    };
    if (all(false)) return true;
    undo(before);
    return commutes(*a.op) && all(true);
  }

  const Form& form_;
  const Makers pattern_;
  const Binding& in_;
  const Makers& made_;
  std::vector<int> values_;    // by value of the form; -1: not known
  std::vector<double> marks_;  // not a number: not known
  std::vector<int> found_values_;
  std::vector<size_t> found_marks_, nodes_;
};

// Values that numbers of the program or its results look at, and the nodes that use each.
struct Uses {
  explicit Uses(const Program& p) : nodes(size_t(p.n_values)), seen(size_t(p.n_values), false) {
    for (size_t k = 0; k < p.nodes.size(); ++k)
      for (const int v : p.nodes[k].in)
        if (v >= 0) nodes[size_t(v)].push_back(k);
    for (const int v : p.outputs) seen[size_t(v)] = true;
    for (const Number& n : p.numbers)
      if (n.op == Number::size) seen[size_t(n.a)] = true;
  }
  std::vector<std::vector<size_t>> nodes;
  std::vector<bool> seen;
};

bool stands_alone(const Program& p, const Raised& r, const Uses& uses) {
  return std::ranges::all_of(r.nodes, [&](size_t k) {
    if (k == r.root) return true;
    for (uint32_t i = 0; i < p.nodes[k].n_out; ++i) {
      const auto v = size_t(p.nodes[k].out) + i;
      if (uses.seen[v]) return false;
      for (const size_t user : uses.nodes[v])
        if (!std::ranges::binary_search(r.nodes, user)) return false;
    }
    return true;
  });
}

std::vector<TensorType> results_of(const Raised& r, const Binding& in) {
  std::vector<const TensorType*> types;
  for (const int v : r.operands) types.push_back(&in.values[size_t(v)]);
  std::vector<TensorType> results;
  try {
    if (const auto bound = bind_program(op_program(r), types.data(), nullptr))
      for (const int v : bound->program->outputs) results.push_back(bound->values[size_t(v)]);
  } catch (const Error&) {  // the op does not take these operands
  }
  return results;
}

bool fits(const Raised& r, const Binding& in) {
  const std::vector<TensorType> made = results_of(r, in);
  const TensorType& wanted = in.values[size_t(in.program->nodes[r.root].out)];
  return made.size() == 1 && made[0].dtype == wanted.dtype && made[0].same_shape(wanted);
}
}  // namespace

std::vector<Raised> find_forms(const Binding& in, std::span<const Form> forms) {
  const Program& p = *in.program;
  const Makers made(p);
  const Uses uses(p);
  std::unordered_map<const Op*, std::vector<Match>> by_root;
  for (const Form& f : forms) {
    Match match(f, in, made);
    by_root[match.root()].push_back(std::move(match));
  }
  std::vector<Raised> all;
  std::vector<bool> taken(p.nodes.size(), false);
  for (size_t k = p.nodes.size(); k-- > 0;) {
    const auto candidates = by_root.find(p.nodes[k].op);
    if (candidates == by_root.end() || taken[k]) continue;
    std::optional<Raised> largest;
    for (Match& match : candidates->second) {
      auto found = match.at(k);
      if (!found || (largest && largest->nodes.size() >= found->nodes.size())) continue;
      if (std::ranges::any_of(found->nodes, [&](size_t n) { return taken[n]; })) continue;
      if (stands_alone(p, *found, uses) && fits(*found, in)) largest = std::move(found);
    }
    if (!largest) continue;
    for (const size_t n : largest->nodes) taken[n] = true;
    all.push_back(std::move(*largest));
  }
  return all;
}

std::shared_ptr<const Program> op_program(const Raised& r) {
  auto made = std::make_shared<Program>(*r.form->op);  // attributes go on pointing into the form, which stays
  for (Program::Node& node : made->nodes)
    for (dvt_attr& a : node.attrs.at)
      for (size_t m = 0; a.kind == DVT_A_F64 && m < r.marks.size(); ++m) {
        if (a.v.f == r.form->marks[m]) a.v.f = r.marks[m];
        else if (a.v.f == 1 / r.form->marks[m]) a.v.f = 1 / r.marks[m];
        else continue;
        break;
      }
  return made;
}
}  // namespace dovetail
