#include "dispatch/lower.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "device/environment.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/fold.hpp"
#include "dispatch/replay.hpp"

namespace dovetail {
namespace {
constexpr int kMostRounds = 8;              // of decompositions within decompositions
constexpr uint64_t kSmall = 1024;           // bytes of a result that may always be folded
constexpr uint64_t kMostFolded = 16 << 20;  // bytes of a program, which holds them as long as it lives

std::string text_of(const dvt_attr& a) {
  switch (a.kind) {
    case DVT_A_NONE: return "-";
    case DVT_A_STR: return std::string(a.v.s, a.count);
    case DVT_A_I64S: return std::string(reinterpret_cast<const char*>(a.v.is), a.count * sizeof(int64_t));
    case DVT_A_F64S: return std::string(reinterpret_cast<const char*>(a.v.fs), a.count * sizeof(double));
    case DVT_A_DTYPE: return std::string(reinterpret_cast<const char*>(&a.v.dt), sizeof a.v.dt);
    default: return std::string(reinterpret_cast<const char*>(&a.v.raw), sizeof a.v.raw);
  }
}

// One round: the program's nodes, one after another, on another builder.
class Round {
 public:
  Round(const Lowered& from, const TensorType* const* sizes, const Attrs& arguments, Device& device,
        LowerOptions options)
      : from_(from),
        options_(options),
        algebra_([this](int value) -> const TensorType& { return builder_.value(value); }),
        folding_(device),
        folded_(from.folded),
        compiles_(compiler_of(device)) {
    auto bound = bind_program(from.program, sizes, &arguments);
    if (!bound) throw Error(ErrorKind::value, "[compile] the program does not hold for the sizes of its trace");
    bound_ = std::move(*bound);
    for (const TensorType& t : bound_.values) types_.emplace_back(t);
    if (options.raise) find_raised(device);
    find_used();
    find_read_here();
    for (const Program::Constant& c : from.program->constants)
      if (c.number < 0) scalars_[c.value] = c.scalar;
    executable_ = make_executable(std::move(*bind_program(from.program, sizes, &arguments)), device);
  }

  // Whether another round may find more: in decompositions that were opened, or where less is used.
  bool run(Lowered& to) {
    const Program& p = *from_.program;
    std::vector<int> operands;
    for (const Program::Input& input : p.inputs) {
      const TensorType& t = types_[size_t(input.value)];
      const bool any = input.dtype == DType::none;
      operands.push_back(any ? builder_.input(t.dtype, t.shape()) : builder_.input(input, t.shape()));
    }
    for (size_t i = 0; i < p.arguments.size(); ++i) builder_.argument(is_real(int(i)), p.arguments[i]);
    std::vector<int> became, arrays;
    for (const Program::Array& a : p.arrays) {
      arrays.push_back(used_[size_t(a.value)] ? builder_.array(a.elements, a.name) : -1);
      if (arrays.back() >= 0) folding_.note_array(arrays.back(), a.elements);
    }
    InlineOptions options;
    options.arrays = &arrays;
    options.became = &became;
    options.replace = [&](size_t k, const auto& in, const auto& values) { return replaced(k, in, values); };
    const std::vector<int> outputs = record_inline(builder_, bound_, operands, options);
    to.program = builder_.finish(outputs, p.signature);
    to.values = from_.values, to.folded = folded_, to.covered = std::move(covered_);
    for (int& v : to.values)
      if (v >= 0) v = became[size_t(v)];
    return again_;
  }

 private:
  bool is_real(int argument) const {
    return std::ranges::any_of(from_.program->numbers, [&](const Number& n) {
      return n.op == Number::attribute && n.is_real && n.b == argument;
    });
  }

  // What a program's results follow from. A node that nothing uses is left out if it can raise no error: what was
  // simplified or folded has left it behind.
  void find_used() {
    const Program& p = *from_.program;
    used_.assign(size_t(p.n_values), false), uses_.assign(used_.size(), 0);
    for (const int v : p.outputs) used_[size_t(v)] = true, ++uses_[size_t(v)];
    for (const Number& n : p.numbers)
      if (n.op == Number::size) used_[size_t(n.a)] = true;
    for (size_t k = p.nodes.size(); k-- > 0;) {
      const Program::Node& node = p.nodes[k];
      bool needed = !never_raises(node);
      for (uint32_t i = 0; i < node.n_out; ++i) needed |= used_[size_t(node.out) + i];
      for (const int v : node.in)
        if (v >= 0 && needed) used_[size_t(v)] = true, ++uses_[size_t(v)];
      if (!needed) used_[size_t(node.out)] = false;
    }
  }
  static bool is_permutation(const Op& o) {
    static const Op* const all[] = {&op("permute_dims"), &op("matrix_transpose")};
    return std::ranges::count(all, &o);
  }
  bool never_raises(const Program::Node& node) const {
    if (from_.covered.contains(node.out)) return true;
    if (node.op->spec.flags & op_control || !node.slots.empty() || node.n_out != 1) return false;
    return node.in.empty() || (node.in.size() == 1 && (node.op->elementwise || is_permutation(*node.op)));
  }

  // Values that something else reads than programs that nodes hold.
  void find_read_here() {
    const Program& p = *from_.program;
    read_here_.assign(size_t(p.n_values), false);
    for (const int v : p.outputs) read_here_[size_t(v)] = true;
    for (const Program::Node& node : p.nodes)
      for (const int v : node.in)
        if (v >= 0 && !(node.op->spec.flags & op_control)) read_here_[size_t(v)] = true;
  }

  bool has_kernel(const Raised& r, Device& device) const {
    std::vector<const TensorType*> types;
    for (const int v : r.operands) types.push_back(&types_[size_t(v)]);
    auto bound = bind_program(op_program(r), types.data(), nullptr);
    const auto plans = plan_program(*bound, device);
    return plans->plans.back()->mode == Plan::kernel;
  }

  void find_raised(Device& device) {
    std::set<DType> dtypes;
    for (const TensorType& t : bound_.values) dtypes.insert(t.dtype);
    for (const DType dtype : dtypes)
      for (Raised& r : find_forms(bound_, shipped_forms(dtype))) {
        if (opens_ && !has_kernel(r, device)) continue;  // it would be opened again, or be a call and no group
        for (const size_t k : r.nodes) raised_[k] = nullptr;
        const size_t root = r.root;
        raised_[root] = std::make_shared<const Raised>(std::move(r));
      }
  }

  // The op in place of the form that `r` found; nothing in place of the nodes on its way.
  std::vector<int> raise(const Program::Node& node, const Raised* r, const std::vector<int>& became) {
    if (!r) return std::vector<int>(node.n_out, -1);
    std::vector<const TensorType*> types;
    std::vector<int> operands;
    for (const int v : r->operands) types.push_back(&types_[size_t(v)]), operands.push_back(became[size_t(v)]);
    again_ = true;  // the device may have no kernel for the op
    return record_inline(builder_, *bind_program(op_program(*r), types.data(), nullptr), operands);
  }

  std::optional<std::vector<int>> replaced(size_t k, const std::vector<int>& in, const std::vector<int>& became) {
    const Program::Node& node = from_.program->nodes[k];
    if (never_raises(node) && !used_[size_t(node.out)]) return std::vector<int>{-1};
    if (const auto found = raised_.find(k); found != raised_.end()) return raise(node, found->second.get(), became);
    if (node.op->spec.flags & op_control || !node.slots.empty()) return std::nullopt;
    std::vector<int> operands = with_literals(node, in);
    if (auto folded = fold(node, operands)) return folded;
    if (auto opened = open(k, operands)) return opened;
    const Plan& plan = *executable_->plans->plans[k];
    if (casts_ && node.op->elementwise && plan.mode == Plan::kernel)
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i] >= 0) operands[i] = in_dtype(operands[i], plan.compute_of(int(i)));
    const bool alone = !node.in.empty() && node.in[0] >= 0 && uses_[size_t(node.in[0])] == 1;
    return call(*node.op, operands, node.attrs, types_[size_t(node.out)].dtype, alone);
  }

  // Equal literals are one value; what reads them knows what they are.
  std::vector<int> with_literals(const Program::Node& node, std::vector<int> in) {
    for (size_t i = 0; i < in.size(); ++i) {
      const auto found = scalars_.find(node.in[i]);
      if (found == scalars_.end()) continue;
      const Scalar& x = found->second;
      const std::string bits(reinterpret_cast<const char*>(x.bits), info(x.dtype).bytes());
      in[i] = literals_.try_emplace({x.dtype, bits}, in[i]).first->second;
      algebra_.note_constant(in[i], x), folding_.note_constant(in[i], x);
    }
    return in;
  }

  std::optional<std::vector<int>> fold(const Program::Node& node, const std::vector<int>& in) {
    const TensorType& type = types_[size_t(node.out)];
    if (!folds_ || node.n_out != 1) return std::nullopt;
    CallKey key = key_of(*node.op, in, node.attrs);
    const auto known = folded_calls_.find(key);
    if (known != folded_calls_.end()) return std::vector<int>{known->second};
    if (folded_ + type.bytes() > kMostFolded) return std::nullopt;
    if (options_.never_grow && type.bytes() > std::max(kSmall, bytes_that_go(node))) return std::nullopt;
    const auto elements = folding_.run({node.op, in, node.attrs}, type);
    if (!elements) return std::nullopt;
    // Loops read a permutation in every round, in the order in memory that was chosen for them: it stays a view.
    if (is_permutation(*node.op) && !read_here_[size_t(node.out)]) {
      const int value = call(*node.op, in, node.attrs, type.dtype)[0];
      folding_.note_array(value, *elements);
      return std::vector<int>{value};
    }
    again_ = true;  // what it was computed from may be used no more
    folded_ += type.bytes();
    const int value = builder_.array(*elements);
    folding_.note_array(value, *elements);
    folded_calls_.emplace(std::move(key), value);
    return std::vector<int>{value};
  }

  // Of the arrays that no other node and no output uses.
  uint64_t bytes_that_go(const Program::Node& node) const {
    uint64_t bytes = 0;
    for (const Program::Array& a : from_.program->arrays)
      if (uses_[size_t(a.value)] == 1 && std::ranges::count(node.in, a.value)) bytes += a.elements.type().bytes();
    return bytes;
  }

  // The results of the node's decomposition, where that is what the device runs.
  std::optional<std::vector<int>> open(size_t k, const std::vector<int>& in) {
    const auto& nested = executable_->nodes[k].nested;
    if (!nested || !opens_) return std::nullopt;
    const Program& body = *nested->binding.program;
    const auto looks_at_sizes = [&](const Guard& g) {
      return !follows_from_attributes(body, g.a) || !follows_from_attributes(body, g.b);
    };
    const auto repeats = [](const Program::Node& n) { return n.op->spec.flags & op_control; };
    if (std::ranges::any_of(body.guards, looks_at_sizes) || std::ranges::any_of(body.nodes, repeats))
      return std::nullopt;
    const Program::Node& node = from_.program->nodes[k];
    std::vector<const TensorType*> types;
    std::vector<int> operands;
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] >= 0) operands.push_back(in[i]), types.push_back(&types_[size_t(node.in[i])]);
    const Attrs& attrs = *executable_->binding.nodes[k].attrs;
    auto bound = bind_program(nested->binding.program, types.data(), &attrs);
    if (!bound) return std::nullopt;
    again_ = true;
    builder_.at(node.where);
    InlineOptions options;
    options.attributes = &attrs;
    return record_inline(builder_, *bound, operands, options);
  }

  static bool follows_from_attributes(const Program& p, int number) {
    const Number& n = p.numbers[size_t(number)];
    if (is_leaf(n.op)) return n.op != Number::size;
    return follows_from_attributes(p, n.a) && (n.b < 0 || follows_from_attributes(p, n.b));
  }

  int in_dtype(int value, DType dtype) {
    if (dtype == DType::none || builder_.value(value).dtype == dtype) return value;
    static const Op& astype = op("astype");
    Attrs attrs;
    attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(dtype).dl}};
    return call(astype, {value}, attrs, dtype)[0];
  }

  using CallKey = std::tuple<const Op*, std::vector<int>, std::vector<std::string>>;
  static CallKey key_of(const Op& op, const std::vector<int>& in, const Attrs& attrs) {
    std::vector<std::string> texts;
    for (int i = 0; i < op.n_attr; ++i) texts.push_back(text_of(attrs.at[i]));
    return {&op, in, std::move(texts)};
  }

  // An equal call gives the same values: ops are functions of their operands and attributes.
  // `alone`: nothing else uses operand 0.
  std::vector<int> call(const Op& op, const std::vector<int>& in, const Attrs& attrs, DType result,
                        bool alone = false) {
    Algebra::Call made{&op, in, attrs};
    if (simplifies_) {
      while (algebra_.simplify(made, alone ? &covered_ : nullptr)) again_ = true, alone = false;
      if (const int value = algebra_.value_of(made, result); value >= 0)
        return again_ = true, std::vector<int>{value};
    }
    const auto [known, fresh] = calls_.try_emplace(key_of(*made.op, made.in, made.attrs), 0);
    if (fresh || !shares_) known->second = builder_.call(*made.op, made.in, made.attrs);
    if (op.spec.n_out == 1) algebra_.note_call(known->second, made);
    std::vector<int> out;
    for (uint32_t i = 0; i < op.spec.n_out; ++i) out.push_back(known->second + int(i));
    return out;
  }

  const Lowered& from_;
  Binding bound_;
  std::vector<TensorType> types_;
  std::shared_ptr<const Executable> executable_;
  const LowerOptions options_;
  ProgramBuilder builder_;
  Algebra algebra_;
  Folding folding_;
  std::map<int, Scalar> scalars_;  // constants that are the same in all calls
  std::vector<bool> used_;         // by value of the program
  std::vector<uint32_t> uses_;     // by nodes and as results
  std::vector<bool> read_here_;
  std::map<CallKey, int> calls_, folded_calls_;
  std::map<std::pair<DType, std::string>, int> literals_;
  std::set<int> covered_;
  uint64_t folded_;
  const bool compiles_;
  const bool opens_ = compiles_ && pass_is_on("open"), casts_ = compiles_ && pass_is_on("cast"),
             shares_ = pass_is_on("cse"), simplifies_ = pass_is_on("algebra"),
             folds_ = options_.fold && pass_is_on("fold");
  std::map<size_t, std::shared_ptr<const Raised>> raised_;  // nullptr: a node of one with another root
  bool again_ = false;
};
}  // namespace

bool pass_is_on(std::string_view name) {
  static constexpr std::string_view all[] = {"raise", "open", "cast", "algebra", "fold", "cse", "fuse"};
  return environment_leaves_on("DOVETAIL_PASSES", name, all);
}

Lowered lower(std::shared_ptr<const Program> program, const TensorType* const* sizes, const Attrs& arguments,
              Device& device, LowerOptions options) {
  options.raise = options.raise && pass_is_on("raise");
  Lowered made{std::move(program), {}};
  made.values.resize(size_t(made.program->n_values));
  for (size_t v = 0; v < made.values.size(); ++v) made.values[v] = int(v);
  for (int round = 0; round < kMostRounds; ++round) {
    Lowered next;
    const bool again = Round(made, sizes, arguments, device, options).run(next);
    options.raise = false;
    made = std::move(next);
    if (!again) break;
  }
  return made;
}
}  // namespace dovetail
