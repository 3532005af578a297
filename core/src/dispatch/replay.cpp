#include "dispatch/replay.hpp"

#include <algorithm>

#include "device/timeline.hpp"
#include "dispatch/execute.hpp"

namespace dovetail {
namespace {
// One node as a call; its operands and outputs are `values`.
class NodeCall {
 public:
  NodeCall(const Executable& e, size_t k, std::vector<Tensor>& values)
      : node_(e.binding.program->nodes[k]),
        inv_{.op = *node_.op,
             .device = e.plans->device,
             .in = few_,
             .n_in = int(node_.in.size()),
             .attrs = const_cast<Attrs&>(*e.binding.nodes[k].attrs)} {  // normalised: no rule changes them again
    if (node_.in.size() > kMaxInputs) many_.resize(node_.in.size()), inv_.in = many_.data();
    const Tensor** in = node_.in.size() > kMaxInputs ? many_.data() : few_;
    for (size_t i = 0; i < node_.in.size(); ++i) in[i] = node_.in[i] < 0 ? nullptr : &values[size_t(node_.in[i])];
    for (uint32_t i = 0; i < node_.op->spec.n_out; ++i) inv_.out[i] = &values[size_t(node_.out) + i];
    inv_.plan = e.plans->plans[k];
    inv_.work = e.binding.nodes[k].work;
  }
  Invocation& invocation() { return inv_; }

 private:
  const Program::Node& node_;
  const Tensor* few_[kMaxInputs];
  std::vector<const Tensor*> many_;
  Invocation inv_;
};

void run_node(const Executable& e, size_t k, std::vector<Tensor>& values) {
  const Program::Node& node = e.binding.program->nodes[k];
  const Executable::Node& bound = e.nodes[k];
  if (node.op->spec.flags & op_converts && !values[size_t(node.in[0])].device) {  // stays a host scalar
    values[size_t(node.out)] = cast_scalar(values[size_t(node.in[0])], e.plans->plans[k]->result[0]);
    return;
  }
  NodeCall call(e, k, values);
  Invocation& inv = call.invocation();
  if (bound.donor >= 0) inv.replace(values[size_t(bound.donor)]);
  const auto dispatch = [&] {
    if (bound.nested && !engine_choice) run_decomposition(inv, *bound.nested);
    else inv.run();
  };
  if (recording()) [[unlikely]]
    run_recorded(node.op->spec.name.c_str(), dispatch);
  else dispatch();
  for (const int v : node.dies) values[size_t(v)] = Tensor();
}

int donor_of(const Program::Node& node, std::span<const TensorType> values) {
  const TensorType& out = values[size_t(node.out)];
  for (const int v : node.in)
    if (v >= 0 && values[size_t(v)].dtype == out.dtype && values[size_t(v)].same_shape(out) &&
        std::ranges::count(node.dies, v))
      return v;
  return -1;
}
}  // namespace

bool ProgramPlans::is_current() const { return epoch == plans_epoch(); }

std::shared_ptr<const ProgramPlans> plan_program(const Binding& binding, Device& device) {
  auto made = std::make_shared<ProgramPlans>();
  made->epoch = plans_epoch();
  made->device = &device;
  const std::vector<Tensor> values = PackedTypes(binding.values).tensors(device);
  for (size_t k = 0; k < binding.nodes.size(); ++k) {
    const Program::Node& node = binding.program->nodes[k];
    std::vector<const Tensor*> in;
    for (const int v : node.in) in.push_back(v < 0 ? nullptr : &values[size_t(v)]);
    Attrs attrs = *binding.nodes[k].attrs;
    const Invocation inv{
        .op = *node.op, .device = &device, .in = in.data(), .n_in = int(in.size()), .attrs = attrs};
    const Plan& plan = plan_for(inv.op, device, dtype_key(inv), inv);
    made->plans.push_back(&plan);
    NodeDTypes& dtypes = made->dtypes.emplace_back();
    std::ranges::copy(plan.compute, dtypes.compute);
    std::ranges::copy(plan.result, dtypes.result);
  }
  return made;
}

PackedTypes::PackedTypes(std::span<const TensorType> types) : n_(types.size()) {
  size_t words = n_;
  for (const TensorType& t : types) words += size_t(t.rank());
  words_.resize(words);
  int64_t* to = words_.data();
  for (const TensorType& t : types) {
    *to++ = int64_t(t.dtype) << 32 | t.rank();
    to = std::copy_n(t.dims, t.rank(), to);
  }
}

std::vector<Tensor> PackedTypes::tensors(Device& device) const {
  std::vector<Tensor> made(n_);
  const int64_t* from = words_.data();
  for (Tensor& t : made) {
    t.dtype = DType(*from >> 32);
    const auto rank = size_t(uint32_t(*from));
    t.set_shape({from + 1, rank});
    t.set_device(&device);
    from += 1 + rank;
  }
  return made;
}

Executable::Executable(Binding b, std::shared_ptr<const ProgramPlans> p)
    : binding(std::move(b)), plans(std::move(p)), types(binding.values), nodes(binding.nodes.size()) {
  for (size_t k = 0; k < nodes.size(); ++k) nodes[k].donor = donor_of(binding.program->nodes[k], binding.values);
  give_back_values(binding.values);
  binding.numbers = {};
}

std::vector<Tensor> Executable::values() const {
  std::vector<Tensor> made = types.tensors(device());
  const auto& constants = binding.program->constants;
  for (size_t i = 0; i < constants.size(); ++i)
    made[size_t(constants[i].value)] = host_scalar(binding.constants[i]);
  return made;
}

size_t Executable::bytes() const {
  return sizeof *this + types.bytes() + nodes.size() * (sizeof(Node) + sizeof(Binding::Node)) +
         binding.attrs.size() * (sizeof(Attrs) + sizeof(void*)) + binding.constants.size() * sizeof(Scalar);
}

std::shared_ptr<const Executable> make_executable(Binding binding, std::shared_ptr<const ProgramPlans> plans) {
  auto made = std::make_shared<Executable>(std::move(binding), std::move(plans));
  std::vector<Tensor> values;
  for (size_t k = 0; k < made->nodes.size(); ++k) {
    if (made->plans->plans[k]->mode != Plan::decomposition) continue;
    if (values.empty()) values = made->values();
    made->nodes[k].nested = decomposition_of(NodeCall(*made, k, values).invocation());
  }
  return made;
}

void replay(const Executable& e, const Tensor* const* in, Tensor* const* out) {
  const Program& p = *e.binding.program;
  std::vector<Tensor> values = e.values();
  for (size_t i = 0; i < p.inputs.size(); ++i) values[size_t(p.inputs[i].value)] = *in[i];
  for (size_t k = 0; k < p.nodes.size(); ++k) run_node(e, k, values);
  for (size_t i = 0; i < p.outputs.size(); ++i) *out[i] = values[size_t(p.outputs[i])];
}
}  // namespace dovetail
