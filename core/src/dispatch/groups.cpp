#include "dispatch/groups.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "device/log.hpp"
#include "device/timeline.hpp"
#include "dispatch/dump.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/lower.hpp"
#include "dispatch/replay.hpp"
#include "dispatch/submit.hpp"
#include "dispatch/values.hpp"
#include "few.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
constexpr size_t kLongestName = 100;  // of a group, in characters
constexpr size_t kFewOperands = 16;

// Code that something runs by, to be found by the next equal group.
class CodeCache {
 public:
  std::shared_ptr<const GroupCode> find_or_make(Device& device, const dvt_compiler& compiler,
                                                std::unique_ptr<const CProgram> program) {
    const uint64_t* const hash = program->view().hash;
    const std::shared_ptr<Entry> entry = entry_of({&device, hash[0], hash[1]});
    std::unique_lock<std::mutex> lock(entry->making, std::defer_lock);
    {
      const GilRelease others_run;  // another thread may make the same code, which may take seconds
      lock.lock();
    }
    if (auto found = entry->code.lock()) return found;
    auto made = std::make_shared<const GroupCode>(device, compiler, std::move(program));
    entry->code = made;
    return made;
  }

 private:
  using Key = std::tuple<const Device*, uint64_t, uint64_t>;
  struct Entry {
    std::mutex making;
    std::weak_ptr<const GroupCode> code;
  };

  std::shared_ptr<Entry> entry_of(const Key& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& e) { return e.second.use_count() == 1 && e.second->code.expired(); });
    auto& entry = known_[key];
    if (!entry) entry = std::make_shared<Entry>();
    return entry;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> known_;
};
CodeCache& code_cache() {
  static CodeCache& cache = *new CodeCache;
  return cache;
}

std::string name_of(const Program& part) {
  std::string name;
  for (const Program::Node& node : part.nodes) {
    name += (name.empty() ? "" : "+") + node.op->spec.name;
    if (name.size() > kLongestName) return name.substr(0, kLongestName) + "...";
  }
  return name;
}

// May the node be part of a group? Attributes that follow from sizes would be the group's numbers, and programs
// within nodes are the host's.
bool can_join(const Program::Node& node) {
  return node.slots.empty() && !(node.op->spec.flags & (op_control | op_view | op_set_slice));
}

std::vector<dvt_claim> claims_of(const dvt_compiler& compiler, Device& device, const CProgram& program) {
  std::vector<dvt_claim> claims(program.view().n_nodes);
  const dvt_status status = compiler.claim(device.handle, &program.view(), claims.data());
  if (status == DVT_UNSUPPORTED) return {};
  if (status != DVT_OK) device.fail(status, "[compile] claim");
  return claims;
}

// The operands of one run as the code sees them.
class GroupCall {
 public:
  GroupCall(const std::vector<int64_t>& symbols, size_t n_in, size_t n_out) : in_(n_in), out_(n_out) {
    call_ = {.struct_size = sizeof call_,
             .n_in = uint32_t(n_in),
             .n_out = uint32_t(n_out),
             .n_attr = 0,
             .in = in_.data(),
             .out = out_.data(),
             .attr = nullptr,
             .workspace = nullptr,
             .workspace_size = 0,
             .stream = nullptr,
             .correlation_id = 0,
             .packed = nullptr};
    exe_call_ = {.struct_size = sizeof exe_call_,
                 .n_symbols = uint32_t(symbols.size()),
                 .n_numbers = 0,
                 .reserved = 0,
                 .symbols = symbols.data(),
                 .numbers = nullptr,
                 .call = &call_};
  }
  GroupCall(const GroupCall&) = delete;

  void set_in(size_t i, const DLTensor& t) { in_[i] = &t; }
  void set_in(size_t i, const Tensor& t) { in_[i] = &t.view; }
  void set_out(size_t i, const Tensor& t) { out_[i] = &t.view; }
  dvt_call& call() { return call_; }
  const dvt_exe_call& of(const dvt_call* call) {
    exe_call_.call = call;
    return exe_call_;
  }

 private:
  Few<const DLTensor*, kFewOperands> in_, out_;
  dvt_call call_;
  dvt_exe_call exe_call_;
};
}  // namespace

const dvt_compiler* compiler_of(const Device& device) {
  const Backend& backend = *device.backend;
  if (backend.interpreted || !DVT_HAS(backend.table, dvt_backend, extension)) return nullptr;
  return static_cast<const dvt_compiler*>(backend.table->extension("dovetail.compiler", DVT_X_COMPILER));
}

// ---- code -------------------------------------------------------------------------------------------------------

GroupCode::GroupCode(Device& device, const dvt_compiler& compiler, std::unique_ptr<const CProgram> program)
    : device_(device), compiler_(compiler), program_(std::move(program)) {
  const dvt_status status = compiler_.compile(device_.handle, &program_->view(), "{}", &exe_);
  if (status != DVT_OK) device_.fail(status, "[compile] a group");
}

GroupCode::~GroupCode() {
  try {
    if (!device_.synchronous && device_.state == DeviceState::usable) device_.synchronize();
  } catch (const Error&) {  // the fault belongs to work that has been queued, which will report it
  }
  if (device_.state != DeviceState::closed) compiler_.destroy(exe_);
}

std::string GroupCode::describe() const {
  if (!DVT_HAS(&compiler_, dvt_compiler, describe)) return {};
  std::string text;
  const auto sink = [](void* to, const void* bytes, size_t n) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), n);
  };
  return compiler_.describe(exe_, sink, &text) == DVT_OK ? cleaned(text) : std::string();
}

dvt_answer GroupCode::query(const dvt_exe_call& call) const {
  dvt_answer answer{};
  answer.struct_size = sizeof answer;
  const dvt_status status = compiler_.query(exe_, &call, &answer);
  if (status == DVT_UNSUPPORTED) answer.level = 0, answer.workspace = 0;
  else if (status != DVT_OK) device_.fail(status, "[compile] query");
  else if (!answer.level) answer.level = DVT_NATIVE;
  return answer;
}

// Of the values that end with the step those that others have made: what a group makes for itself is never in
// memory.
std::vector<int> ends_of(const Program& program, const Schedule::Step& step) {
  std::vector<int> ends;
  for (const int v : step.dies) {
    const auto makes = [&](uint32_t k) {
      const Program::Node& node = program.nodes[k];
      return v >= node.out && v < node.out + int(node.n_out);
    };
    if (std::ranges::none_of(step.nodes, makes)) ends.push_back(v);
  }
  return ends;
}

// ---- groups -----------------------------------------------------------------------------------------------------

std::shared_ptr<const Fusion> fuse(const Binding& binding, Device& device, const Attrs* arguments, uint32_t flags) {
  const dvt_compiler* const compiler = compiler_of(device);
  if (!compiler || !pass_is_on("fuse")) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  const Program& program = *binding.program;
  const CProgram whole(binding.program, symbolic_types(binding, arguments), flags, false);
  const std::vector<dvt_claim> claims = claims_of(*compiler, device, whole);
  std::vector<uint32_t> group(program.nodes.size(), 0);
  auto made = std::make_shared<Fusion>();
  made->reasons.resize(program.nodes.size());
  for (size_t k = 0; k < claims.size(); ++k) {
    if (claims[k].group && claims[k].gain_ns > 0 && can_join(program.nodes[k])) group[k] = claims[k].group;
    else made->reasons[k] = claims[k].reason;
  }
  made->types = whole.types();
  made->dies.resize(program.nodes.size());
  Schedule schedule = schedule_with_views(binding, group);
  for (Schedule::Step& step : schedule.steps) {
    Fusion::Step& to = made->steps.emplace_back(Fusion::Step{step.nodes, std::nullopt});
    made->dies[step.nodes.back()] = step.dies;
    if (!step.is_group) continue;
    std::vector<int> ends = ends_of(program, step);
    std::vector<uint32_t> views;
    for (const uint32_t k : step.nodes)
      if (is_view(program.nodes[k])) views.push_back(k), made->reasons[k] = nullptr;
    std::erase_if(step.nodes, [&](uint32_t k) { return is_view(program.nodes[k]); });
    Part part = part_of(binding, made->types, step);
    const char* const name = lasting(name_of(*part.program));
    std::string where = part.program->nodes[0].where;
    auto view = std::make_unique<const CProgram>(part.program, part.types, flags);
    dump_group(name, *part.program, view->view());
    try {
      auto code = code_cache().find_or_make(device, *compiler, std::move(view));
      to.group = Fusion::Group{std::move(part), std::move(views), std::move(ends), std::move(code), name,
                               std::move(where)};
      made->has_groups = true;
    } catch (const Error& e) {  // its nodes run by themselves
      const std::string what = std::string("[compile] ") + name + " runs node by node: " + e.what();
      for (const uint32_t k : step.nodes) made->reasons[k] = lasting(e.what());
      if (e.kind == ErrorKind::not_implemented) log(Log::dispatch, 3, what);
      else on_warning(what);
    }
  }
  made->flags = flags;
  for (const auto& [k, bodies] : binding.programs)
    for (const auto& body : bodies) made->bodies.try_emplace(body->program, std::make_shared<Fusions>());
  made->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return made;
}

namespace {
// Results of nodes first: the program's inputs have the memory of callers, who may go on to hold it. Of one shape
// whatever the sizes: what is equal by chance, a row and one of one row, the code of the group may read otherwise.
std::vector<int> donors_of(const Fusion& fusion, const Fusion::Step& step, const BoundGroup& bound,
                           int first_result, uint64_t in_place) {
  const Part& part = step.group->part;
  const std::vector<int>& dies = fusion.dies[step.nodes.back()];
  std::vector<int> donors(part.outputs.size(), -1), memory;
  for (size_t i = 0; i < part.inputs.size(); ++i) memory.push_back(bound.memory_of(part, i));
  const auto is_whole = [&](size_t i) {
    return bound.views.empty() || bound.views[i].base < 0 ||
           (bound.views[i].type.dense && bound.views[i].type.numel == bound.views[i].of_elements);
  };
  for (const bool of_nodes : {true, false})
    for (size_t k = 0; k < donors.size() && in_place >> k; ++k)
      for (size_t i = 0; i < part.inputs.size() && donors[k] < 0 && in_place >> k & 1; ++i) {
        const auto &x = fusion.types.values[size_t(part.inputs[i])],
                   &out = fusion.types.values[size_t(part.outputs[k])];
        if ((memory[i] >= first_result) == of_nodes && x.dtype == out.dtype && x.shape == out.shape &&
            std::ranges::count(dies, memory[i]) && std::ranges::count(memory, memory[i]) == 1 && is_whole(i) &&
            !std::ranges::count(donors, int(i)))
          donors[k] = int(i);
      }
  return donors;
}
}  // namespace

std::optional<std::vector<BoundGroup>> bind_groups(const Fusion& fusion, const Binding& binding, Device& device) {
  const auto whole = symbols_in(fusion.types, binding);
  if (!whole) return std::nullopt;
  std::vector<BoundGroup> made;
  for (const Fusion::Step& step : fusion.steps) {
    BoundGroup& bound = made.emplace_back();
    if (!step.group) continue;
    const Part& part = step.group->part;
    for (const int64_t s : part.symbols) bound.symbols.push_back((*whole)[size_t(s)]);
    std::vector<Tensor> in(part.inputs.size()), out(part.outputs.size());
    GroupCall call(bound.symbols, in.size(), out.size());
    const auto set = [&](Tensor& t, int value, bool is_scalar) {
      const TensorType& type = binding.values[size_t(value)];
      t.dtype = type.dtype;
      t.set_shape(type.shape());
      t.set_device(is_scalar ? nullptr : &device);
    };
    for (size_t i = 0; i < in.size(); ++i)
      set(in[i], part.inputs[i], part.program->inputs[i].is_scalar), call.set_in(i, in[i]);
    for (size_t i = 0; i < out.size(); ++i) set(out[i], part.outputs[i], false), call.set_out(i, out[i]);
    bound.answer = step.group->code->query(call.of(&call.call()));
    bound.views = bind_views(binding, step.group->views, part.inputs, device);
    if (!bound.views.empty()) {
      for (size_t i = 0; i < in.size(); ++i)
        if (bound.views[i].base >= 0) call.set_in(i, bound.views[i].type);
      bound.to_views = step.group->code->query(call.of(&call.call()));
      if (!bound.to_views.level) bound.views.clear();
    }
    const uint64_t in_place = (bound.views.empty() ? bound.answer : bound.to_views).in_place;
    bound.donors = donors_of(fusion, step, bound, binding.program->nodes.front().out, in_place);
  }
  return made;
}

// Compiling may take long: it holds no lock.
std::shared_ptr<const Fusion> Fusions::find_or_make(const Binding& binding, Device& device, const Attrs* arguments,
                                                    uint32_t flags) {
  {
    const std::lock_guard lock(mutex_);
    if (none_) return nullptr;
    for (const auto& fusion : known_)
      if (symbols_in(fusion->types, binding)) return fusion;
    if (known_.size() == kMost) return nullptr;
  }
  auto made = fuse(binding, device, arguments, flags);
  const std::lock_guard lock(mutex_);
  for (const auto& fusion : known_)  // of another thread
    if (symbols_in(fusion->types, binding)) return fusion;
  if (made) known_.push_back(made);
  else none_ = true;
  return made;
}

std::vector<std::shared_ptr<const Fusion>> Fusions::known() {
  const std::lock_guard lock(mutex_);
  return known_;
}

std::shared_ptr<const Fusion> fusion_of_body(const Fusion& outer, const Binding& body, Device& device) {
  const auto found = outer.bodies.find(body.program);
  if (found == outer.bodies.end()) return nullptr;
  // What a round's number is in, is another program in each round.
  const auto is_attribute = [](const Number& n) { return n.op == Number::attribute; };
  if (std::ranges::any_of(body.program->numbers, is_attribute)) return nullptr;
  return found->second->find_or_make(body, device, nullptr, outer.flags);
}

size_t count_launches(const Executable& e, bool fused) {
  const auto of_node = [&](size_t k) -> size_t {
    if (e.binding.program->nodes[k].op->spec.flags & op_view) return 0;
    return e.nodes[k].nested ? count_launches(*e.nodes[k].nested, false) : 1;
  };
  size_t n = 0;
  for (size_t k = 0; k < e.nodes.size(); ++k) n += of_node(k);
  if (!fused || !e.fusion) return n;
  for (size_t i = 0; i < e.groups.size(); ++i) {
    if (!e.fusion->steps[i].group || !e.groups[i].answer.level) continue;
    n += 1;
    for (const uint32_t k : e.fusion->steps[i].nodes) n -= of_node(k);
  }
  return n;
}

namespace {
// A small part of a large buffer would hold all of it.
bool may_be_taken(const Tensor& t) {
  return t.dense && t.is_alone() && t.view.data == t.storage->data && t.storage->capacity / 2 <= t.bytes();
}

// Where result `value` is wanted, if the group may write there: code of groups has seen memory as it is allocated.
const Tensor* wanted_memory(std::span<const Wanted> wanted, int value, const Tensor& result) {
  const auto found = std::ranges::find(wanted, value, &Wanted::value);
  if (found == wanted.end()) return nullptr;
  const Tensor& t = *found->memory;
  const auto overlaps = [&](const Wanted& w) { return w.value != value && overlap(*w.memory, t); };
  const bool fits = t.dtype == result.dtype && t.same_shape(result) && t.dense &&
                    reinterpret_cast<uintptr_t>(t.view.data) % result.device->props.alloc_align == 0;
  return fits && std::ranges::none_of(wanted, overlaps) ? &t : nullptr;
}
}  // namespace

bool run_group(const Executable& e, size_t i, Values& values, std::span<const Wanted> wanted) {
  const Fusion::Group& group = *e.fusion->steps[i].group;
  const BoundGroup& bound = e.groups[i];
  Device& device = e.device();
  const Part& part = group.part;
  const size_t n_in = part.inputs.size(), n_out = part.outputs.size();
  GroupCall call(bound.symbols, n_in, n_out);
  Few<const Tensor*, kFewOperands> operands(n_in);
  std::vector<Tensor> copies;  // of operands, each at most once
  const auto keep = [&](Tensor&& t) {
    if (copies.empty()) copies.reserve(n_in);
    return &copies.emplace_back(std::move(t));
  };
  const bool by_views = !bound.views.empty() && views_hold(bound.views, values);
  if (!by_views && !group.views.empty()) {
    set_types_inside(e, i, values);
    for (const uint32_t k : group.views) run_call(e, k, values, {});
  }
  Few<DLTensor, kFewOperands> views(n_in);  // that are not made
  bool dense = true;
  for (size_t k = 0; k < n_in; ++k) {
    if (by_views && bound.views[k].base >= 0) {
      operands[k] = &values[bound.views[k].base];
      call.set_in(k, views[k] = view_of(bound.views[k], *operands[k]));
      continue;
    }
    const Tensor* t = &values[part.inputs[k]];
    if (!t->device && !part.program->inputs[k].is_scalar) t = keep(materialise(*t, device));
    dense &= t->dense;
    operands[k] = t, call.set_in(k, *t);
  }
  Few<Tensor*, kFewOperands> results(n_out);
  for (size_t k = 0; k < n_out; ++k) results[k] = &values.own(part.outputs[k]), call.set_out(k, *results[k]);
  dvt_answer answer = by_views ? bound.to_views : bound.answer;
  if (!dense) {
    answer = group.code->query(call.of(&call.call()));
    for (size_t k = 0; k < n_in && !answer.level && answer.need_compact; ++k)
      if (answer.need_compact >> std::min<size_t>(k, 63) & 1 && operands[k]->device && !operands[k]->dense)
        operands[k] = keep(compact(*operands[k])), call.set_in(k, *operands[k]);
    if (!answer.level && answer.need_compact) answer = group.code->query(call.of(&call.call()));
  }
  if (!answer.level) return false;
  Stream& stream = current_stream(device);
  for (size_t k = 0; k < n_out; ++k) {
    const int donor = bound.donors[k];
    if (const Tensor* const there = wanted_memory(wanted, part.outputs[k], *results[k])) {
      *results[k] = *there;
      value_changes(*there->storage);
    } else if (donor >= 0 && answer.in_place >> k & 1 && values.is_own(bound.memory_of(part, size_t(donor))) &&
               may_be_taken(*operands[size_t(donor)]))
      results[k]->take_over(*operands[size_t(donor)]);
    else results[k]->own(allocate(device, device.index, stream, results[k]->bytes()));
  }
  if (std::ranges::all_of(results, [](const Tensor* t) { return t->numel == 0; })) return true;
  if (capturing) [[unlikely]]
    capturing->meet_launch(group.name, compiler_of(device)->flags & DVT_C_CAPTURE_SAFE);
  const auto dispatch = [&] {
    submit(device, stream, group.name, nullptr, call.call(), {operands.data(), n_in}, {results.data(), n_out},
           answer.workspace, [&](const dvt_call* c) { return group.code->run(call.of(c)); });
  };
  if (recording()) [[unlikely]]
    run_recorded(group.name, dispatch, group.where);
  else dispatch();
  if (!by_views)
    for (const uint32_t k : group.views) values.end(e.binding.program->nodes[k].out);
  return true;
}
}  // namespace dovetail
