#include "dispatch/replay.hpp"

#include <algorithm>

#include "device/timeline.hpp"
#include "dispatch/control.hpp"
#include "dispatch/execute.hpp"

namespace dovetail {
namespace {
// One node as a call; its operands and outputs are `values`.
class NodeCall {
 public:
  NodeCall(const Executable& e, size_t k, std::vector<Tensor>& values)
      : node_(e.binding.program->nodes[k]),
        inv_{.op = *node_.op,
             .device = e.device,
             .in = few_,
             .n_in = int(node_.in.size()),
             .attrs = const_cast<Attrs&>(e.binding.nodes[k].attrs)} {  // normalised: no rule changes them again
    if (node_.in.size() > kMaxInputs) many_.resize(node_.in.size()), inv_.in = many_.data();
    const Tensor** in = node_.in.size() > kMaxInputs ? many_.data() : few_;
    for (size_t i = 0; i < node_.in.size(); ++i) in[i] = node_.in[i] < 0 ? nullptr : &values[size_t(node_.in[i])];
    for (uint32_t i = 0; i < node_.op->spec.n_out; ++i) inv_.out[i] = &values[size_t(node_.out) + i];
    inv_.plan = e.nodes[k].plan;
    inv_.work = e.binding.nodes[k].work;
  }
  Invocation& invocation() { return inv_; }

 private:
  const Program::Node& node_;
  const Tensor* few_[kMaxInputs];
  std::vector<const Tensor*> many_;
  Invocation inv_;
};

// Results that are computed where the caller wants them.
struct Wanted {
  int value;
  const Tensor* memory;
};

void run_wanted(Invocation& inv, int first, std::span<const Wanted> wanted) {
  const Tensor* given[kMaxOutputs] = {};
  for (const Wanted& w : wanted)
    if (w.value >= first && w.value < first + int(inv.op.spec.n_out)) given[w.value - first] = w.memory;
  const bool any = std::any_of(given, given + inv.op.spec.n_out, [](const Tensor* t) { return t != nullptr; });
  if (any) run_into(inv, given);
  else inv.run();
}

void run_call(const Executable& e, size_t k, std::vector<Tensor>& values, std::span<const Wanted> wanted) {
  const Program::Node& node = e.binding.program->nodes[k];
  const Executable::Node& bound = e.nodes[k];
  if (bound.casts && !values[size_t(node.in[0])].device) {  // stays a host scalar
    values[size_t(node.out)] = cast_scalar(values[size_t(node.in[0])], bound.plan->result[0]);
    return;
  }
  NodeCall call(e, k, values);
  Invocation& inv = call.invocation();
  if (bound.donor >= 0) inv.replace(values[size_t(bound.donor)]);
  const auto dispatch = [&] {
    if (bound.nested && !engine_choice) run_decomposition(inv, *bound.nested);
    else if (wanted.empty()) inv.run();
    else run_wanted(inv, node.out, wanted);
  };
  if (recording()) [[unlikely]]
    run_recorded(node.op->spec.name.c_str(), dispatch, node.where);
  else dispatch();
}

void run_node(const Executable& e, size_t k, std::vector<Tensor>& values, std::span<const Wanted> wanted) {
  const Program::Node& node = e.binding.program->nodes[k];
  if (node.op->spec.flags & op_control) {
    const auto run = [&] { run_control(e, k, values); };
    if (recording()) run_recorded(node.op->spec.name.c_str(), run);
    else run();
  } else {
    run_call(e, k, values, wanted);
  }
  for (const int v : node.dies) values[size_t(v)] = Tensor();
}

int donor_of(const Program::Node& node, const std::vector<Tensor>& values) {
  const Tensor& out = values[size_t(node.out)];
  for (const int v : node.in)
    if (v >= 0 && std::ranges::count(node.dies, v) && values[size_t(v)].dtype == out.dtype &&
        values[size_t(v)].same_shape(out))
      return v;
  return -1;
}

// Results of nodes whose memory no operand shares: what is written there early is read by nobody else.
std::vector<Wanted> wanted_results(const Program& p, const std::vector<Tensor>& values,
                                   const Tensor* const* given) {
  std::vector<Wanted> wanted;
  const auto is_operand = [&](const Tensor& t) {
    return std::ranges::any_of(p.inputs, [&](const auto& i) { return overlap(values[size_t(i.value)], t); }) ||
           std::ranges::any_of(p.arrays, [&](const auto& a) { return overlap(values[size_t(a.value)], t); });
  };
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const int v = p.outputs[i];
    const bool made = !p.nodes.empty() && v >= p.nodes.front().out && !values[size_t(v)].storage;
    if (!given[i] || !made || !values[size_t(v)].device || is_operand(*given[i])) continue;
    if (std::ranges::none_of(wanted, [&](const Wanted& w) { return w.value == v; }))
      wanted.push_back({v, given[i]});
  }
  return wanted;
}
}  // namespace

std::shared_ptr<const Executable> make_executable(Binding binding, Device& device, std::span<const Tensor> arrays) {
  auto made = std::make_shared<Executable>();
  made->epoch = plans_epoch();
  made->device = &device;
  made->nodes.resize(binding.nodes.size());
  made->binding = std::move(binding);
  std::vector<Tensor>& values = made->values;
  for (const TensorType& type : made->binding.values) {
    static_cast<TensorType&>(values.emplace_back()) = type;
    values.back().set_device(&device);
  }
  made->binding.values = {};
  for (size_t i = 0; i < made->binding.constants.size(); ++i)
    values[size_t(made->binding.program->constants[i].value)] = host_scalar(made->binding.constants[i]);
  for (size_t i = 0; i < arrays.size(); ++i) values[size_t(made->binding.program->arrays[i].value)] = arrays[i];
  for (size_t k = 0; k < made->nodes.size(); ++k) {
    if (made->binding.program->nodes[k].op->spec.flags & op_control) {
      made->nodes[k].plan = nullptr;
      made->nodes[k].programs = make_executables(made->binding.nodes[k], device);
      continue;
    }
    NodeCall call(*made, k, values);
    Invocation& inv = call.invocation();
    made->nodes[k].plan = inv.plan = &plan_for(inv.op, device, dtype_key(inv), inv);
    made->nodes[k].donor = donor_of(made->binding.program->nodes[k], values);
    made->nodes[k].casts = inv.op.spec.flags & op_converts;
    if (inv.plan->mode == Plan::decomposition) made->nodes[k].nested = decomposition_of(inv);
  }
  return made;
}

bool is_current(const Executable& e) { return e.epoch == plans_epoch(); }

void replay(const Executable& e, const Tensor* const* in, Tensor* const* out) {
  const Program& p = *e.binding.program;
  std::vector<Tensor> values = e.values;
  for (size_t i = 0; i < p.inputs.size(); ++i) values[size_t(p.inputs[i].value)] = *in[i];
  for (size_t k = 0; k < p.nodes.size(); ++k) run_node(e, k, values, {});
  for (size_t i = 0; i < p.outputs.size(); ++i) *out[i] = values[size_t(p.outputs[i])];
}

std::vector<Tensor> replay(const Executable& e, std::vector<Tensor> in, const Tensor* const* given) {
  const Program& p = *e.binding.program;
  std::vector<Tensor> values = e.values;
  for (size_t i = 0; i < p.inputs.size(); ++i) values[size_t(p.inputs[i].value)] = std::move(in[i]);
  const std::vector<Wanted> wanted = given ? wanted_results(p, values, given) : std::vector<Wanted>();
  for (size_t k = 0; k < p.nodes.size(); ++k) run_node(e, k, values, wanted);
  std::vector<Tensor> results;
  for (const int v : p.outputs) results.push_back(values[size_t(v)]);
  return results;
}
}  // namespace dovetail
