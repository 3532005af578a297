#include "dispatch/lower.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "device/environment.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/replay.hpp"

namespace dovetail {
namespace {
constexpr int kMostRounds = 8;  // of decompositions within decompositions

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
  Round(const Lowered& from, const TensorType* const* sizes, const Attrs& arguments, Device& device, bool raise)
      : from_(from), compiles_(compiler_of(device)) {
    auto bound = bind_program(from.program, sizes, &arguments);
    if (!bound) throw Error(ErrorKind::value, "[compile] the program does not hold for the sizes of its trace");
    bound_ = std::move(*bound);
    for (const TensorType& t : bound_.values) types_.emplace_back(t);
    if (raise) find_raised(device);
    executable_ = make_executable(std::move(*bind_program(from.program, sizes, &arguments)), device);
  }

  // Whether a decomposition was opened, in which there may be others.
  bool run(Lowered& to) {
    const Program& p = *from_.program;
    std::vector<int> operands;
    for (const Program::Input& input : p.inputs) {
      const TensorType& t = types_[size_t(input.value)];
      const bool any = input.dtype == DType::none;
      operands.push_back(any ? builder_.input(t.dtype, t.shape()) : builder_.input(input, t.shape()));
    }
    for (size_t i = 0; i < p.arguments.size(); ++i) builder_.argument(is_real(int(i)), p.arguments[i]);
    std::vector<int> became;
    InlineOptions options;
    options.became = &became;
    options.replace = [&](size_t k, const auto& in, const auto& values) { return replaced(k, in, values); };
    const std::vector<int> outputs = record_inline(builder_, bound_, operands, options);
    to.program = builder_.finish(outputs, p.signature);
    to.values = from_.values;
    for (int& v : to.values)
      if (v >= 0) v = became[size_t(v)];
    return opened_;
  }

 private:
  bool is_real(int argument) const {
    return std::ranges::any_of(from_.program->numbers, [&](const Number& n) {
      return n.op == Number::attribute && n.is_real && n.b == argument;
    });
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
    opened_ = true;  // the device may have no kernel for the op
    return record_inline(builder_, *bind_program(op_program(*r), types.data(), nullptr), operands);
  }

  std::optional<std::vector<int>> replaced(size_t k, const std::vector<int>& in, const std::vector<int>& became) {
    const Program::Node& node = from_.program->nodes[k];
    if (const auto found = raised_.find(k); found != raised_.end()) return raise(node, found->second.get(), became);
    if (node.op->spec.flags & op_control || !node.slots.empty()) return std::nullopt;
    if (auto opened = open(k, in)) return opened;
    const Plan& plan = *executable_->plans->plans[k];
    std::vector<int> operands = in;
    if (casts_ && node.op->elementwise && plan.mode == Plan::kernel)
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i] >= 0) operands[i] = in_dtype(operands[i], plan.compute_of(int(i)));
    return call(*node.op, operands, node.attrs);
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
    opened_ = true;
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
    return call(astype, {value}, attrs)[0];
  }

  // An equal call gives the same values: ops are functions of their operands and attributes.
  std::vector<int> call(const Op& op, const std::vector<int>& in, const Attrs& attrs) {
    std::vector<std::string> texts;
    for (int i = 0; i < op.n_attr; ++i) texts.push_back(text_of(attrs.at[i]));
    const auto [known, fresh] = calls_.try_emplace({&op, in, std::move(texts)}, 0);
    if (fresh || !shares_) known->second = builder_.call(op, in, attrs);
    std::vector<int> out;
    for (uint32_t i = 0; i < op.spec.n_out; ++i) out.push_back(known->second + int(i));
    return out;
  }

  const Lowered& from_;
  Binding bound_;
  std::vector<TensorType> types_;
  std::shared_ptr<const Executable> executable_;
  ProgramBuilder builder_;
  std::map<std::tuple<const Op*, std::vector<int>, std::vector<std::string>>, int> calls_;
  const bool compiles_;
  const bool opens_ = compiles_ && pass_is_on("open"), casts_ = compiles_ && pass_is_on("cast"),
             shares_ = pass_is_on("cse");
  std::map<size_t, std::shared_ptr<const Raised>> raised_;  // nullptr: a node of one with another root
  bool opened_ = false;
};
}  // namespace

bool pass_is_on(std::string_view name) {
  static constexpr std::string_view all[] = {"raise", "open", "cast", "cse", "fuse"};
  return environment_leaves_on("DOVETAIL_PASSES", name, all);
}

Lowered lower(std::shared_ptr<const Program> program, const TensorType* const* sizes, const Attrs& arguments,
              Device& device, bool raise) {
  raise = raise && pass_is_on("raise");
  Lowered made{std::move(program), {}};
  made.values.resize(size_t(made.program->n_values));
  for (size_t v = 0; v < made.values.size(); ++v) made.values[v] = int(v);
  for (int round = 0; round < kMostRounds; ++round) {
    Lowered next;
    const bool again = Round(made, sizes, arguments, device, raise && round == 0).run(next);
    made = std::move(next);
    if (!again) break;
  }
  return made;
}
}  // namespace dovetail
