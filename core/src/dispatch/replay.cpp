#include "dispatch/replay.hpp"

#include <algorithm>
#include <optional>

#include "device/capturing.hpp"
#include "device/interpreter.hpp"
#include "device/timeline.hpp"
#include "dispatch/autocast.hpp"
#include "dispatch/control.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/values.hpp"
#include "few.hpp"

namespace dovetail {
namespace {
// One node as a call; its operands and outputs are `values`.
class NodeCall {
 public:
  NodeCall(const Executable& e, size_t k, Values& values)
      : node_(e.binding.program->nodes[k]),
        in_(node_.in.size()),
        inv_(*node_.op, e.plans->device, in_.data(), int(in_.size()),
             const_cast<Attrs&>(*e.binding.nodes[k].attrs)) {  // normalised: no rule changes them again
    for (size_t i = 0; i < in_.size(); ++i) in_[i] = node_.in[i] < 0 ? nullptr : &values[node_.in[i]];
    for (uint32_t i = 0; i < node_.op->spec.n_out; ++i) inv_.out[i] = &values.own(node_.out + int(i));
    inv_.plan = e.plans->plans[k];
    inv_.work = e.binding.nodes[k].work;
  }
  Invocation& invocation() { return inv_; }

 private:
  const Program::Node& node_;
  Few<const Tensor*, kMaxInputs> in_;
  Invocation inv_;
};

// The memory that is wanted for each of a node's results, in `memory`; nullptr: for none.
const Tensor* const* wanted_of(const Program::Node& node, std::span<const Wanted> wanted, const Tensor** memory) {
  bool any = false;
  for (uint32_t i = 0; i < node.n_out; ++i) {
    const auto found = std::ranges::find(wanted, node.out + int(i), &Wanted::value);
    memory[i] = found == wanted.end() ? nullptr : found->memory;
    any |= memory[i] != nullptr;
  }
  return any ? memory : nullptr;
}

// By the op's decomposition, whose nodes may take the memory of what ends with the node, and write where results
// are wanted.
void run_nested(const Executable& e, size_t k, Values& values, const Tensor* const* given) {
  const Executable& nested = *e.nodes[k].nested;
  const Program::Node& node = e.binding.program->nodes[k];
  std::vector<Tensor> results = replay(nested, take_operands(e, k, values), given);
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor& out = values.own(node.out + int(i));
    out = results[i].device ? std::move(results[i]) : materialise(results[i], nested.device());
  }
}

}  // namespace

void run_call(const Executable& e, size_t k, Values& values, std::span<const Wanted> wanted) {
  const Program::Node& node = e.binding.program->nodes[k];
  const Executable::Node& bound = e.nodes[k];
  if (node.op->spec.flags & op_converts && !values[node.in[0]].device) {  // stays a host scalar
    values.own(node.out) = cast_scalar(values[node.in[0]], e.plans->plans[k]->result[0]);
    return;
  }
  if (bound.keeps && wanted.empty()) {
    const auto cast = [&] {
      values.own(node.out) = cast_and_keep(values[node.in[0]], e.plans->plans[k]->result[0], e.device());
    };
    if (recording()) [[unlikely]]
      run_recorded(node.op->spec.name.c_str(), cast, node.where);
    else cast();
    return;
  }
  NodeCall call(e, k, values);
  Invocation& inv = call.invocation();
  const bool has_donor = bound.donor >= 0 && values.is_own(bound.donor);
  if (has_donor) inv.replace(values[bound.donor]);
  const Tensor* memory[kMaxOutputs];
  if (!wanted.empty()) inv.given = wanted_of(node, wanted, memory);
  const auto dispatch = [&] {
    if (bound.nested && !engine_choice) {
      if (inv.given || has_donor) run_nested(e, k, values, inv.given);
      else run_decomposition(inv, *bound.nested);
    } else {
      inv.run();
    }
  };
  if (recording()) [[unlikely]]
    run_recorded(node.op->spec.name.c_str(), dispatch, node.where);
  else dispatch();
}

namespace {
void end_values(const Executable& e, size_t k, Values& values) {
  for (const int v : e.dies(k)) values.end(v);
}

void run_node(const Executable& e, size_t k, Values& values, std::span<const Wanted> wanted) {
  const Program::Node& node = e.binding.program->nodes[k];
  if (node.op->spec.flags & op_control) {
    const auto run = [&] { run_control(e, k, values); };
    if (recording()) run_recorded(node.op->spec.name.c_str(), run);
    else run();
  } else {
    run_call(e, k, values, wanted);
  }
  end_values(e, k, values);
}

// Ctrl-C between two nodes. Reading the clock takes as long as a small node: it is read after much work only.
class InterruptBetweenNodes {
 public:
  void operator()() {
    if (work_ > kMuch) [[unlikely]]
      look();
  }
  void add(uint64_t work) { work_ += work; }

 private:
  static constexpr uint64_t kMuch = 1'000'000;  // a millisecond or less
  [[gnu::noinline]] void look() {
    static thread_local InterruptCheck check;  // of all runs: ten times a second in all
    work_ = 0;
    if (!capturing) check();  // a signal handler's own work is no part of a capture
  }
  uint64_t work_ = 0;
};

bool runs_as_group(const Executable& e, size_t step) {
  return e.fusion->steps[step].group && e.groups[step].answer.level && !engine_choice;
}

void run_steps(const Executable& e, Values& values, std::span<const Wanted> wanted) {
  InterruptBetweenNodes check_interrupt;
  for (size_t i = 0; i < e.fusion->steps.size(); ++i) {
    check_interrupt();
    const Fusion::Step& step = e.fusion->steps[i];
    for (const uint32_t k : step.nodes) check_interrupt.add(e.binding.nodes[k].work);
    if (runs_as_group(e, i) && run_group(e, i, values, wanted)) {
      if (i + 1 < e.fusion->steps.size())
        for (const int v : step.group->dies) values.end(v);
    } else {
      set_types_inside(e, i, values);
      for (const uint32_t k : step.nodes) run_node(e, k, values, wanted);
    }
  }
}

void run_nodes(const Executable& e, Values& values, std::span<const Wanted> wanted) {
  if (e.fusion && e.fusion->has_groups) return run_steps(e, values, wanted);
  InterruptBetweenNodes check_interrupt;
  for (size_t k = 0; k < e.nodes.size(); ++k) {
    check_interrupt();
    check_interrupt.add(e.binding.nodes[k].work);
    run_node(e, k, values, wanted);
  }
}

// Results of nodes first: the program's inputs have the memory of callers, who may go on to hold it.
int donor_of(const Program& p, const Program::Node& node, const std::vector<int>& dies,
             std::span<const TensorType> values) {
  if (node.op->spec.flags & op_control) return -1;  // its programs take what ends with it
  const TensorType& out = values[size_t(node.out)];
  int donor = -1;
  for (const int v : node.in)
    if (v >= 0 && values[size_t(v)].dtype == out.dtype && values[size_t(v)].same_shape(out) &&
        std::ranges::count(dies, v)) {
      donor = v;
      if (v >= p.nodes.front().out) break;
    }
  return donor;
}

bool keeps(const Program& p, const Program::Node& node, std::span<const TensorType> values) {
  if (!(node.op->spec.flags & op_converts)) return false;
  const auto narrow = [](DType t) { return t == DType::f16 || t == DType::bf16; };
  const DType from = values[size_t(node.in[0])].dtype, to = values[size_t(node.out)].dtype;
  const bool is_operand = std::ranges::count(p.inputs, node.in[0], &Program::Input::value) ||
                          std::ranges::count(p.arrays, node.in[0], &Program::Array::value);
  return is_operand && narrow(to) && is_float(from) && from != to;
}

// Results of nodes whose memory no operand shares: what is written there early is read by nobody else.
std::vector<Wanted> wanted_results(const Program& p, const Values& values, const Tensor* const* given) {
  std::vector<Wanted> wanted;
  const auto is_operand = [&](const Tensor& t) {
    return std::ranges::any_of(p.inputs, [&](const auto& i) { return overlap(values[i.value], t); }) ||
           std::ranges::any_of(p.arrays, [&](const auto& a) { return overlap(values[a.value], t); });
  };
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const int v = p.outputs[i];
    const bool made = !p.nodes.empty() && v >= p.nodes.front().out && !values[v].storage;
    if (!given[i] || !made || !values[v].device || is_operand(*given[i])) continue;
    if (std::ranges::none_of(wanted, [&](const Wanted& w) { return w.value == v; }))
      wanted.push_back({v, given[i]});
  }
  return wanted;
}
}  // namespace

std::vector<Tensor> take_operands(const Executable& e, size_t k, Values& values) {
  const Program::Node& node = e.binding.program->nodes[k];
  std::vector<Tensor> in;
  in.reserve(node.in.size());
  for (const int v : node.in)
    if (v >= 0) in.push_back(values[v]);
  for (const int v : e.dies(k))
    if (std::ranges::find(node.in, v) != node.in.end()) values.end(v);
  return in;
}

bool ProgramPlans::is_current() const { return epoch == plans_epoch(); }

std::shared_ptr<const ProgramPlans> plan_program(const Binding& binding, Device& device,
                                                 std::shared_ptr<Fusions> fusions) {
  auto made = std::make_shared<ProgramPlans>();
  made->epoch = plans_epoch();
  made->device = &device;
  made->program = binding.program;
  made->fusions = std::move(fusions);
  std::vector<Tensor> values(binding.values.size());
  std::vector<Tensor*> at;
  for (Tensor& t : values) at.push_back(&t);
  PackedTypes(binding.values).set(at.data(), device);
  for (size_t k = 0; k < binding.nodes.size(); ++k) {
    const Program::Node& node = binding.program->nodes[k];
    NodeDTypes& dtypes = made->dtypes.emplace_back();
    if (node.op->spec.flags & op_control) {
      made->plans.push_back(nullptr);
      continue;
    }
    std::vector<const Tensor*> in;
    for (const int v : node.in) in.push_back(v < 0 ? nullptr : &values[size_t(v)]);
    Attrs attrs = *binding.nodes[k].attrs;
    const Invocation inv(*node.op, &device, in.data(), int(in.size()), attrs);
    const Plan& plan = plan_for(inv.op, device, dtype_key(inv), inv);
    made->plans.push_back(&plan);
    std::ranges::copy(plan.compute, dtypes.compute);
    std::ranges::copy(plan.result, dtypes.result);
    if (node.op->n_attr) dtypes.attrs = &made->attrs.emplace_back(*binding.nodes[k].attrs);
  }
  return made;
}

PackedTypes::PackedTypes(std::span<const TensorType> types, size_t n_first, const std::vector<bool>* skipped)
    : n_(types.size()), n_first_(n_first) {
  for (size_t i = 0; i < n_; ++i) {
    if (i == n_first) n_first_words_ = words_.size();
    const TensorType& t = types[i];
    if (!skipped || !(*skipped)[i]) {
      words_.push_back(int64_t(t.dtype) << 32 | t.rank());
      words_.insert(words_.end(), t.dims, t.dims + t.rank());
    } else if (i && i != n_first && (*skipped)[i - 1]) {
      --words_.back();
    } else {
      words_.push_back(-1);
    }
  }
  if (n_first == n_) n_first_words_ = words_.size();
  words_.shrink_to_fit();
}

void PackedTypes::set(Tensor* const* made, Device& device, bool first) const {
  const int64_t* from = words_.data() + (first ? 0 : n_first_words_);
  for (Tensor *const *to = made, *const *const end = made + (first ? n_ : n_ - n_first_); to != end;) {
    if (*from < 0) {
      to -= *from++;
      continue;
    }
    Tensor& t = **to++;
    t.dtype = DType(*from >> 32);
    const auto rank = uint32_t(*from++);
    int64_t step = 1;  // as set_shape(), of sizes that it has seen
    bool empty = false;
    for (uint32_t axis = rank; axis-- > 0;) {
      const int64_t n = t.dims[axis] = from[axis];
      t.dims[DVT_MAX_NDIM + axis] = step;
      step *= n ? n : 1, empty |= !n;
    }
    t.ndim = int32_t(rank), t.numel = empty ? 0 : uint64_t(step), t.dense = true;
    t.set_device(&device);
    from += rank;
  }
}

std::vector<TensorType> PackedTypes::of(std::span<const int> values) const {
  std::vector<const int64_t*> places;
  for (const int64_t* at = words_.data(); places.size() < n_;) {
    places.insert(places.end(), size_t(*at < 0 ? -*at : 1), at);
    at += *at < 0 ? 1 : 1 + uint32_t(*at);
  }
  std::vector<TensorType> types;
  for (const int v : values) {
    const int64_t* at = places[size_t(v)];
    TensorType& t = types.emplace_back();
    t.dtype = DType(*at >> 32);
    t.set_shape({at + 1, uint32_t(*at)});
  }
  return types;
}

// Is each output another value that a node makes?
static bool makes_other_outputs(const Program& p) {
  std::vector<bool> made(size_t(p.n_values));
  for (const Program::Node& node : p.nodes)
    for (uint32_t i = 0; i < node.n_out; ++i) made[size_t(node.out) + i] = true;
  for (const int v : p.outputs) {
    if (!made[size_t(v)]) return false;
    made[size_t(v)] = false;
  }
  return true;
}

static size_t first_inputs_of(const Program& p) {
  size_t n = 0;
  for (const Program::Input& input : p.inputs) n += size_t(input.value) == n;
  return n;
}

Executable::Executable(Binding b, std::shared_ptr<const ProgramPlans> p, std::span<const Tensor> on_device,
                       std::shared_ptr<const Fusion> f)
    : binding(std::move(b)),
      plans(std::move(p)),
      first_inputs(first_inputs_of(*binding.program)),
      types(binding.values, first_inputs),
      nodes(binding.nodes.size()),
      arrays(on_device.begin(), on_device.end()),
      resets(device().resets) {
  const Program& program = *binding.program;
  if (f)
    if (auto bound = bind_groups(*f, binding, device())) {
      fusion = std::move(f), groups = std::move(*bound);
      leave_out_inside();
    }
  for (size_t k = 0; k < nodes.size(); ++k) {
    nodes[k].donor = donor_of(program, program.nodes[k], dies(k), binding.values);
    nodes[k].keeps = keeps(program, program.nodes[k], binding.values);
  }
  if (!program.arguments.empty()) numbers = binding.numbers;
  makes_outputs = makes_other_outputs(program);
  give_back_memory(binding);
}

void Executable::leave_out_inside() {
  std::vector<bool> skipped(binding.values.size(), false);
  for (size_t i = 0; i < groups.size(); ++i) {
    const Fusion::Step& step = fusion->steps[i];
    std::vector<TensorType> of_values;
    std::vector<int> values;
    for (size_t k = 0; step.group && groups[i].answer.level && k < step.nodes.size(); ++k) {
      const Program::Node& node = binding.program->nodes[step.nodes[k]];
      for (int v = node.out; v < node.out + int(node.n_out); ++v) {
        if (std::ranges::count(step.group->part.outputs, v)) continue;
        skipped[size_t(v)] = true;
        values.push_back(v), of_values.push_back(binding.values[size_t(v)]);
      }
    }
    inside.push_back({std::move(values), PackedTypes(of_values)});
  }
  types = PackedTypes(binding.values, first_inputs, &skipped);
}

void set_types_inside(const Executable& e, size_t step, Values& values) {
  std::vector<Tensor*> at;
  for (const int v : e.inside[step].values) at.push_back(&values.own(v));
  e.inside[step].types.set(at.data(), e.device());
}

size_t Executable::bytes() const {
  size_t parts = 0;
  for (const auto& [node, made] : programs)
    for (size_t i = 0; i < made.size(); ++i)
      if (!i || made[i] != made[i - 1]) parts += made[i]->bytes();
  for (const Inside& i : inside) parts += sizeof i + i.values.size() * sizeof(int) + i.types.bytes();
  for (const BoundGroup& g : groups)
    parts += sizeof g + g.symbols.size() * sizeof(int64_t) + g.donors.size() * sizeof(int) +
             g.views.size() * sizeof(GroupView);
  return parts + sizeof *this + types.bytes() + nodes.size() * (sizeof(Node) + sizeof(Binding::Node)) +
         binding.attrs.size() * (sizeof(Attrs) + sizeof(void*)) + binding.constants.size() * sizeof(Scalar);
}

std::shared_ptr<const Executable> make_executable(Binding binding, std::shared_ptr<const ProgramPlans> plans,
                                                  std::span<const Tensor> arrays,
                                                  std::shared_ptr<const Fusion> fusion) {
  auto made = std::make_shared<Executable>(std::move(binding), std::move(plans), arrays, std::move(fusion));
  std::optional<Values> values;
  for (size_t k = 0; k < made->nodes.size(); ++k) {
    const Plan* plan = made->plans->plans[k];
    if (!plan)
      made->programs.emplace(k, make_executables(made->binding.programs.at(k), made->device(), made->fusion.get()));
    if (!plan || plan->mode != Plan::decomposition) continue;
    if (!values) values.emplace(*made);
    made->nodes[k].nested = decomposition_of(NodeCall(*made, k, *values).invocation());
  }
  return made;
}

void replay(const Executable& e, const Tensor* const* in, Tensor* const* out,
            const std::vector<Scalar>* constants) {
  const std::vector<int>& outputs = e.binding.program->outputs;
  for (size_t i = 0; i < outputs.size(); ++i) out[i]->drop_storage();
  Values values(e, in, out, constants);
  run_nodes(e, values, {});
  if (!e.makes_outputs)
    for (size_t i = 0; i < outputs.size(); ++i) out[i]->share(values[outputs[i]]);
}

std::vector<Tensor> replay(const Executable& e, std::vector<Tensor> in, const Tensor* const* given,
                           const std::vector<Scalar>* constants) {
  const Program& p = *e.binding.program;
  Values values(e, std::move(in), constants);
  const std::vector<Wanted> wanted = given ? wanted_results(p, values, given) : std::vector<Wanted>();
  run_nodes(e, values, wanted);
  std::vector<Tensor> results;
  results.reserve(p.outputs.size());
  for (auto v = p.outputs.begin(); v != p.outputs.end(); ++v)
    if (values.is_own(*v) && std::find(v + 1, p.outputs.end(), *v) == p.outputs.end())
      results.push_back(std::move(values.own(*v)));
    else results.push_back(values[*v]);
  return results;
}

namespace {
// Copies in place of the operands whose memory results of a group take.
void give_donors(const Executable& e, size_t step, Values& values) {
  for (const int donor : e.groups[step].donors) {
    if (donor < 0) continue;
    const int v = e.groups[step].memory_of(e.fusion->steps[step].group->part, size_t(donor));
    if (values.is_own(v) && values[v].device && values[v].dense) values.own(v) = compact(values[v]);
  }
}
}  // namespace

void replay_and_compare(const Executable& e, std::vector<Tensor> in, const std::vector<Scalar>* constants,
                        const std::function<void(const GroupResult&)>& compare) {
  if (!e.fusion || !e.fusion->has_groups) return;
  Values values(e, std::move(in), constants);
  for (size_t i = 0; i < e.fusion->steps.size(); ++i) {
    const Fusion::Step& step = e.fusion->steps[i];
    std::vector<Tensor> results;
    {
      Values of_group(values);  // ends before the nodes run, which may take the memory of what ends with them
      if (runs_as_group(e, i)) give_donors(e, i, of_group);
      const bool ran = runs_as_group(e, i) && run_group(e, i, of_group, {});
      for (size_t k = 0; ran && k < step.group->part.outputs.size(); ++k)
        results.push_back(of_group[step.group->part.outputs[k]]);
    }
    set_types_inside(e, i, values);
    for (const uint32_t k : step.nodes) run_node(e, k, values, {});
    for (size_t k = 0; k < results.size(); ++k) {
      const int v = step.group->part.outputs[k];
      compare({i, v, results[k], values[v]});
    }
  }
}
}  // namespace dovetail
