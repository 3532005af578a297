// Ops by name.
#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
struct Registry {
  std::mutex mutex;
  std::deque<Op> ops;
  std::unordered_map<std::string, Op*> by_name;
};

void add(Registry&, OpSpec);

Registry& registry() {
  static Registry* const r = [] {  // never destroyed: ops are used until the process ends
    auto* made = new Registry;
    for (const OpSpec& spec : builtin_ops()) add(*made, spec);
    return made;
  }();
  return *r;
}

[[noreturn]] void refuse(const OpSpec& spec, const std::string& why) {
  throw Error(ErrorKind::value, "[register_op] op '" + spec.name + "': " + why);
}

void check_params(const OpSpec& spec, Op& op) {
  uint32_t newest = 1;  // version of the operands so far
  for (const ParamSpec& p : spec.params) {
    if (p.name.empty()) refuse(spec, "a parameter has no name");
    if (std::count_if(spec.params.begin(), spec.params.end(), [&](auto& q) { return q.name == p.name; }) > 1)
      refuse(spec, "two parameters are called '" + p.name + "'");
    if (p.since > spec.version)
      refuse(spec, "'" + p.name + "' is since version " + std::to_string(p.since) +
                       ": expected at most the op's, " + std::to_string(spec.version));
    if (is_operand(p.kind)) {
      if (p.since > 1 && !p.optional)
        refuse(spec, "'" + p.name + "' is newer than the op: expected it to be optional, for kernels without it");
      if (p.since < newest)
        refuse(spec, "'" + p.name + "' follows an operand of a newer version: expected operands by version");
      newest = p.since;
      if (op.variadic) refuse(spec, "'" + p.name + "' follows a variadic operand, which must be the last");
      if (op.n_in == kMaxInputs) refuse(spec, "more than " + std::to_string(kMaxInputs) + " operands");
      op.operand_kinds[op.n_in++] = p.kind;
      op.variadic = p.variadic;
      if (p.variadic && p.kind != ParamKind::value)
        refuse(spec, "'" + p.name + "' is variadic: expected an operand of kind value");
    } else {
      if (p.since > 1 && p.fallback.kind == AttrDefault::required)
        refuse(spec, "'" + p.name + "' is newer than the op: expected a default, for kernels that do not know it");
      if (p.kind == ParamKind::dtype) op.dtype_attr = op.n_attr;
      op.keyed_by_attrs |= p.kind == ParamKind::dtype || p.kind == ParamKind::scalar;
      op.n_attr += 1;
    }
  }
  if (op.n_attr > kMaxAttrs) refuse(spec, "more than " + std::to_string(kMaxAttrs) + " attributes");
  if (spec.n_out < 1 || spec.n_out > kMaxOutputs) refuse(spec, "1 to " + std::to_string(kMaxOutputs) + " outputs");
}

// The kinds of an op's attributes, in their order.
std::vector<ParamKind> attributes_of(const OpSpec& spec) {
  std::vector<ParamKind> kinds;
  for (const ParamSpec& p : spec.params)
    if (!is_operand(p.kind)) kinds.push_back(p.kind);
  return kinds;
}

// What runs an op with one of these flags relies on its operands and attributes.
void check_flags(const OpSpec& spec, const Op& op) {
  const auto require = [&](OpFlags flag, bool fits, const char* expected) {
    if (spec.flags & flag && !fits) refuse(spec, std::string("its traits: expected ") + expected);
  };
  require(op_set_slice, spec.shape == "set_slice" && op.n_in == 2 && op.n_attr == 3,
          "set_slice of an op with its shape rule and parameters only");
  require(op_converts, op.n_in == 1 && op.n_attr == 1 && op.dtype_attr == 0,
          "converts of an op with one operand and one attribute, a dtype, only");
  require(op_identity_on_ints, op.n_in == 1 && spec.n_out == 1 && spec.shape == "same",
          "identity_on_ints of an op with one operand and shape rule same only");
  require(op_integer_exponent, op.n_in == 2, "integer_exponent of an op with two operands only");
  using K = ParamKind;
  const auto is_value = [](const ParamSpec& p) { return p.kind == K::value; };
  require(op_autocast, (spec.flags & op_autocast) != op_autocast && std::ranges::any_of(spec.params, is_value),
          "one autocast policy, of an op with operands of kind value");
  const auto takes = [&](std::vector<K> kinds, int n_in) {
    return op.variadic && op.n_in == n_in && attributes_of(spec) == kinds && spec.shape == "control" &&
           spec.dtype == "control";
  };
  require(op_loop, takes({K::i64, K::i64s, K::program}, 1), "loop of an op with the parameters of loop only");
  require(op_branch, takes({K::program, K::program}, 2), "branch of an op with the parameters of cond only");
  require(op_while, takes({K::program, K::program}, 1), "while of an op with the parameters of while_loop only");
  require(op_scan, takes({K::i64, K::i64, K::program}, 1), "scan of an op with the parameters of scan only");
  if (spec.shape == "control" && !(spec.flags & op_control))
    refuse(spec, "its shape rule is control: expected one of the traits loop, branch, while and scan");
}

void find_rules(const OpSpec& spec, Op& op) {
  try {
    const rules::NamedShapeRule& shape = rules::shape_rule(spec.shape);
    op.shape = shape.rule;
    op.elementwise = shape.elementwise;
    op.dtype = rules::dtype_rule(spec.dtype).rule;
    if (spec.flags & op_view) op.view = rules::view(spec.shape);
  } catch (const Error& e) {
    refuse(spec, e.what());
  }
}

// The strings of the defaults stay where they are when the spec is moved.
void set_defaults(const OpSpec& spec, Op& op) {
  int i = 0;
  for (const ParamSpec& p : spec.params) {
    if (is_operand(p.kind)) continue;
    if (p.name == "axis") op.axis_attr = i;
    if (p.name == "keepdims") op.keepdims_attr = i;
    set_default(op.defaults, i++, p);
  }
}

void add(Registry& r, OpSpec spec) {
  if (spec.name.empty()) refuse(spec, "has no name");
  if (r.by_name.count(spec.name))
    refuse(spec, "is registered already: choose a name with your own prefix, as 'acme.foo'");
  Op& op = r.ops.emplace_back();
  try {
    check_params(spec, op);
    find_rules(spec, op);
    check_flags(spec, op);
    set_defaults(spec, op);
  } catch (...) {
    r.ops.pop_back();
    throw;
  }
  op.kernel_name = spec.name.find('.') == std::string::npos ? "dvt." + spec.name : spec.name;
  op.id = int(r.ops.size()) - 1;
  op.spec = std::move(spec);
  r.by_name[op.spec.name] = &op;
}
}  // namespace

Op& register_op(OpSpec spec) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const std::string name = spec.name;
  add(r, std::move(spec));
  return *r.by_name.at(name);
}

const Op* find_op(const std::string& name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto found = r.by_name.find(name);
  return found == r.by_name.end() ? nullptr : found->second;
}

const Op& op(const std::string& name) {
  if (const Op* found = find_op(name)) return *found;
  std::vector<std::string> known;
  for (const Op* o : all_ops()) known.push_back(o->spec.name);
  throw Error(ErrorKind::value, "there is no op '" + name + "'" + did_you_mean(name, known));
}

uint32_t operands_of(const Op& op, uint32_t version) {
  return uint32_t(std::ranges::count_if(
      op.spec.params, [&](const ParamSpec& p) { return is_operand(p.kind) && p.since <= version; }));
}

void expect_attrs(const Op& op, uint64_t given) {
  int i = 0;
  for (const ParamSpec& p : op.spec.params) {
    if (is_operand(p.kind)) continue;
    if (p.fallback.kind == AttrDefault::required && !(given >> i & 1))
      throw Error(ErrorKind::type, "[" + op.spec.name + "] misses the attribute '" + p.name + "'");
    ++i;
  }
}

std::vector<const Op*> all_ops() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<const Op*> ops;
  for (const Op& o : r.ops) ops.push_back(&o);
  return ops;
}

void lock_ops() { registry().mutex.lock(); }
void unlock_ops() { registry().mutex.unlock(); }
}  // namespace dovetail
