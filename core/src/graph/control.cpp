#include "graph/control.hpp"

#include <algorithm>

#include "../text.hpp"  // not graph/text.hpp

namespace dovetail {
namespace {
std::string described(const TensorType& t) {
  return std::string(info(t.dtype).name) + " of shape " + to_string(t.shape());
}
bool same_type(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.same_shape(b); }

TensorType dense(DType dtype, std::span<const int64_t> shape) {
  TensorType t;
  t.dtype = dtype;
  t.set_shape(shape);
  return t;
}

using Types = std::vector<TensorType>;

std::vector<const TensorType*> pointers(const Types& types) {
  std::vector<const TensorType*> out;
  for (const TensorType& t : types) out.push_back(&t);
  return out;
}

Types results_of(const Binding& b) {
  Types out;
  for (const int v : b.program->outputs)
    out.push_back(dense(b.values[size_t(v)].dtype, b.values[size_t(v)].shape()));
  return out;
}

class ControlBinder {
 public:
  ControlBinder(const Program& outer, size_t k, const Attrs& attrs, BindLimits& limits, std::string* why)
      : node_(outer.nodes[k]), k_(k), attrs_(attrs), limits_(limits), why_(why) {}

  std::optional<ControlBinding> run(const std::vector<const TensorType*>& in) {
    for (const TensorType* t : in) in_.push_back(dense(t->dtype, t->shape()));
    const uint32_t flags = node_.op->spec.flags;
    const bool bound = flags & op_loop     ? loop()
                       : flags & op_branch ? branch()
                       : flags & op_while  ? while_loop()
                                           : scan();
    if (!bound) return std::nullopt;
    return std::move(made_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::value,
                "[" + node_.op->spec.name + "] node " + std::to_string(k_) + place() + ": " + why);
  }
  std::string place() const { return node_.where.empty() ? "" : " (" + node_.where + ")"; }
  const std::string& name_of(int attr) const {
    const auto& params = node_.op->spec.params;
    return std::ranges::find_if(params, [&](const ParamSpec& p) { return !is_operand(p.kind) && attr-- == 0; })
        ->name;
  }

  // Nothing where a guard does not hold.
  std::shared_ptr<Binding> bind(int attr, const Types& types, const Attrs* attrs = nullptr) {
    auto bound =
        bind_nested(program_in(attrs_.at[attr]).shared_from_this(), pointers(types).data(), attrs, limits_, why_);
    if (bound) return std::make_shared<Binding>(std::move(*bound));
    if (why_) *why_ = name_of(attr) + " of " + node_.op->spec.name + place() + ": " + *why_;
    return nullptr;
  }

  void add(std::shared_ptr<Binding> binding) {
    made_.steps += binding->steps + 1;
    if (made_.steps > BindLimits::kMostSteps)
      fail("more than " + std::to_string(BindLimits::kMostSteps) + " steps: expected fewer rounds");
    made_.programs.push_back(std::move(binding));
  }

  void expect_bool(const TensorType& t, const char* what) const {
    if (t.dtype != DType::b8 || t.rank())
      fail(std::string(what) + " is " + described(t) + ": expected a bool array without axes");
  }

  void expect_same(const Types& got, const Types& expected, size_t n, const char* what, const char* other) const {
    for (size_t i = 0; i < n; ++i)
      if (!same_type(got[i], expected[i]))
        fail(std::string(what) + " " + std::to_string(i) + " is " + described(got[i]) + ": expected " +
             described(expected[i]) + ", as " + other + " has it; astype or reshape it");
  }

  static bool uses_round(const Program& body) {
    return std::ranges::any_of(body.numbers, [](const Number& n) { return n.op == Number::attribute && n.a == 0; });
  }

  bool loop() {
    const int64_t count = attrs_.i64(LoopAttrs::count);
    if (count > BindLimits::kMostRounds)
      fail(std::to_string(count) + " rounds: expected at most " + std::to_string(BindLimits::kMostRounds));
    Attrs round;
    round.at[0] = {DVT_A_I64, 1, {.i = 0}};
    round.set_ints(1, attrs_.i64s(LoopAttrs::numbers));
    const bool differ = uses_round(program_in(attrs_.at[LoopAttrs::body]));
    Types carries = in_, before;  // `before`: what the last bound round took
    for (int64_t i = 0; i < count; ++i) {
      round.at[0].v.i = i;
      const bool again = i && !differ && std::ranges::equal(carries, before, same_type);
      auto bound = again ? made_.programs.back() : bind(LoopAttrs::body, carries, &round);
      if (!bound) return false;
      before = std::exchange(carries, results_of(*bound));
      add(std::move(bound));
    }
    made_.results = std::move(carries);
    return true;
  }

  bool branch() {
    expect_bool(in_[0], "pred");
    const Types operands(in_.begin() + 1, in_.end());
    const auto then = bind(BranchAttrs::then, operands);
    const auto otherwise = then ? bind(BranchAttrs::otherwise, operands) : nullptr;
    if (!otherwise) return false;
    made_.results = results_of(*then);
    expect_same(results_of(*otherwise), made_.results, made_.results.size(), "else: result", "then");
    add(then), add(otherwise);
    return true;
  }

  bool while_loop() {
    const auto cond = bind(WhileAttrs::cond, in_);
    const auto body = cond ? bind(WhileAttrs::body, in_) : nullptr;
    if (!body) return false;
    expect_bool(results_of(*cond)[0], "cond: its result");
    made_.results = results_of(*body);
    expect_same(made_.results, in_, in_.size(), "body: result", "the carry");
    add(cond), add(body);
    return true;
  }

  bool scan() {
    const int64_t n_carry = attrs_.i64(ScanAttrs::n_carry), length = attrs_.i64(ScanAttrs::length);
    const size_t most = std::min(in_.size(), program_in(attrs_.at[ScanAttrs::body]).outputs.size());
    if (n_carry < 0 || size_t(n_carry) > most)
      fail("n_carry is " + std::to_string(n_carry) + ": expected 0 to " + std::to_string(most));
    if (length < 0) fail("length is " + std::to_string(length) + ": expected at least 0");
    Types operands = in_;
    for (size_t i = size_t(n_carry); i < in_.size(); ++i) {
      if (!in_[i].rank() || in_[i].size(0) != length)
        fail("xs " + std::to_string(i - size_t(n_carry)) + " is " + described(in_[i]) + ": expected " +
             std::to_string(length) + " elements along its first axis");
      if (is_packed(in_[i].dtype))
        fail("xs " + std::to_string(i - size_t(n_carry)) + ": " + storage_refusal(in_[i].dtype));
      operands[i] = dense(in_[i].dtype, in_[i].shape().subspan(1));
    }
    const auto body = bind(ScanAttrs::body, operands);
    if (!body) return false;
    made_.results = results_of(*body);
    expect_same(made_.results, in_, size_t(n_carry), "body: carry", "the initial carry");
    for (size_t i = size_t(n_carry); i < made_.results.size(); ++i) {
      TensorType& y = made_.results[i];
      if (y.rank() == DVT_MAX_NDIM) fail("result " + std::to_string(i) + " has 16 axes: expected at most 15");
      if (is_packed(y.dtype)) fail("result " + std::to_string(i) + ": " + storage_refusal(y.dtype));
      std::vector<int64_t> shape{length};
      shape.insert(shape.end(), y.shape().begin(), y.shape().end());
      y = dense(y.dtype, shape);
    }
    add(body);
    return true;
  }

  const Program::Node& node_;
  const size_t k_;
  const Attrs& attrs_;
  BindLimits& limits_;
  std::string* const why_;
  Types in_;
  ControlBinding made_{};
};

[[noreturn]] void misfit(const Op& op, const std::string& what, size_t got, size_t expected) {
  throw Error(ErrorKind::value, "[" + op.spec.name + "] " + what + " " + std::to_string(got) +
                                    " arrays: expected " + std::to_string(expected));
}
}  // namespace

uint32_t count_results(const Op& op, const Attrs& attrs, size_t n_in) {
  const auto takes = [&](int attr, const char* name, size_t n) {
    const Program& p = program_in(attrs.at[attr]);
    if (p.inputs.size() != n) misfit(op, std::string(name) + " takes", p.inputs.size(), n);
    return p.outputs.size();
  };
  const auto gives = [&](const char* name, size_t got, size_t expected) {
    if (got != expected) misfit(op, std::string(name) + " gives", got, expected);
    return uint32_t(got);
  };
  const uint32_t flags = op.spec.flags;
  if (flags & op_loop) return gives("body", takes(LoopAttrs::body, "body", n_in), n_in);
  if (flags & op_branch) {
    const size_t then = takes(BranchAttrs::then, "then", n_in - 1);
    return gives("else", takes(BranchAttrs::otherwise, "else", n_in - 1), then);
  }
  if (flags & op_while) {
    gives("cond", takes(WhileAttrs::cond, "cond", n_in), 1);
    return gives("body", takes(WhileAttrs::body, "body", n_in), n_in);
  }
  return uint32_t(takes(ScanAttrs::body, "body", n_in));
}

std::optional<ControlBinding> bind_control(const Program& outer, size_t k, const Attrs& attrs,
                                           const std::vector<const TensorType*>& in, BindLimits& limits,
                                           std::string* why) {
  return ControlBinder(outer, k, attrs, limits, why).run(in);
}
}  // namespace dovetail
