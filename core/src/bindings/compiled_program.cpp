#include "bindings/compiled_program.hpp"

#include <algorithm>
#include <bit>

#include "bindings/autocast.hpp"
#include "bindings/engines.hpp"
#include "bindings/interchange.hpp"
#include "device/timeline.hpp"
#include "dispatch/execute.hpp"

namespace dovetail::bindings {
namespace {
// Runs whose nodes do more work than this in all release the GIL (about 50 us on one core).
constexpr uint64_t kHeavy = 100'000;

bool is_brief(const Executable& e) {
  if (!e.device().synchronous) return false;
  uint64_t work = 0;
  for (size_t k = 0; k < e.binding.nodes.size(); ++k) {
    const Plan* plan = e.plans->plans[k];
    if (!plan || (plan->mode != Plan::kernel && plan->mode != Plan::view && plan->mode != Plan::identity))
      return false;
    work += e.binding.nodes[k].work;
  }
  return work <= kHeavy;
}

constexpr int64_t kKeyShape[] = {4};  // of a draw's key

std::vector<const TensorType*> types_of(const std::vector<Tensor>& tensors) {
  std::vector<const TensorType*> types;
  for (const Tensor& t : tensors) types.push_back(&t);
  return types;
}

// Builds what the function returns.
class Builder {
 public:
  Builder(const std::vector<Returned>& parts, const Match& match, const Constants& constants,
          std::vector<py::object>& made)
      : parts_(parts), match_(match), constants_(constants), made_(made) {}

  py::object next() {
    const Returned& p = parts_[at_++];
    switch (p.kind) {
      case Returned::output: return made_[p.n];
      case Returned::input: return py::reinterpret_borrow<py::object>(match_.arrays[p.n]);
      case Returned::object: return py::reinterpret_borrow<py::object>(match_.objects[p.n]);
      case Returned::value: return p.what;
      case Returned::integer: return py::int_(constants_.at(p.n).read<int64_t>());
      case Returned::real: return py::float_(constants_.at(p.n).read<double>());
      case Returned::tuple: {
        py::tuple all(p.n);
        for (uint32_t i = 0; i < p.n; ++i) all[i] = next();
        return all;
      }
      case Returned::list: return list(p.n);
      case Returned::dict: {
        py::dict all;
        for (const py::object& key : p.keys) all[key] = next();
        return all;
      }
      case Returned::made: {
        const py::list all = list(p.n);
        return p.what(all);
      }
    }
    return py::none();
  }

 private:
  py::list list(uint32_t n) {
    py::list all(n);
    for (uint32_t i = 0; i < n; ++i) all[i] = next();
    return all;
  }

  const std::vector<Returned>& parts_;
  const Match& match_;
  const Constants& constants_;
  std::vector<py::object>& made_;
  size_t at_ = 0;
};
}  // namespace

CompiledProgram::CompiledProgram(std::shared_ptr<RunnableProgram> program, Device& device, bool on_default_device,
                                 DType lower, Guards guards, Effects effects, std::string function)
    : program_(std::move(program)),
      device_(device),
      on_default_device_(on_default_device),
      lower_(lower),
      guards_(std::move(guards)),
      effects_(std::move(effects)),
      function_(std::move(function)),
      late_(late_numbers(program_->program())) {}

CompiledProgram::LateNumbers CompiledProgram::late_numbers(const Program& p) {
  LateNumbers late{.all = true, .numbers = {}, .constants = {}};
  std::vector<bool> follows(p.numbers.size());
  for (size_t i = 0; i < follows.size(); ++i) {
    const Number& n = p.numbers[i];
    if (n.op == Number::attribute) follows[i] = n.is_real;
    else if (!is_leaf(n.op)) follows[i] = follows[size_t(n.a)] || (n.b >= 0 && follows[size_t(n.b)]);
    if (follows[i]) late.numbers.push_back(i);
  }
  for (const Guard& g : p.guards)
    late.all &= (g.compare == Guard::same && g.a == g.b) || (!follows[size_t(g.a)] && !follows[size_t(g.b)]);
  for (const Program::Node& node : p.nodes)
    for (const Program::Slot& slot : node.slots) late.all &= !follows[size_t(slot.number)];
  for (size_t i = 0; i < p.constants.size(); ++i)
    if (p.constants[i].number >= 0 && follows[size_t(p.constants[i].number)]) late.constants.push_back(i);
  return late;
}

void CompiledProgram::add_numbers(std::vector<int64_t>& key, const std::vector<int64_t>& integers,
                                  const std::vector<double>& reals) const {
  key.insert(key.end(), integers.begin(), integers.end());
  if (late_.all) return;
  for (const double x : reals) key.push_back(std::bit_cast<int64_t>(x));
}

std::optional<Constants> CompiledProgram::constants(const Executable& e, const std::vector<double>& reals,
                                                    Miss& miss) const {
  if (!late_.all || late_.numbers.empty()) return Constants{e, {}};
  const Program& p = program_->program();
  std::vector<NumberValue> values = e.numbers;
  for (const size_t i : late_.numbers) {
    const Number& n = p.numbers[i];
    std::optional<NumberValue> v = NumberValue{0, n.op == Number::attribute ? reals[size_t(n.b)] : 0};
    if (n.op != Number::attribute) v = evaluate(n, p.numbers, values);
    if (!v) return miss.why = "a number that follows from an argument has no value", std::nullopt;
    values[i] = *v;
  }
  if (late_.constants.empty()) return Constants{e, {}};
  std::vector<Scalar> all;
  all.reserve(p.constants.size());
  for (size_t i = 0; i < p.constants.size(); ++i) all.push_back(e.binding.constant(i));
  for (const size_t i : late_.constants) {
    const auto number = size_t(p.constants[i].number);
    all[i] = constant_of(all[i].dtype, p.numbers[number], values[number]);
  }
  return Constants{e, std::move(all)};
}

void CompiledProgram::capture_in(std::shared_ptr<Captures> captures) {
  if (capture_of(device_)) captures_ = std::move(captures);
}

std::string CompiledProgram::capture_state(const Executable& e) const {
  if (captures_) return captures_->state_of(e);
  return capture_of(device_) ? "not captured: it is switched off" : "";
}

bool CompiledProgram::match(const BoundArguments& given, Match& m, int* failed) const {
  if (on_default_device_ && &to_device(Py_None) != &device_) return false;
  if (lower_dtype_here(device_) != lower_) return false;
  return guards_.match(given, m, failed);
}

std::shared_ptr<const CompiledProgram::Bound> CompiledProgram::bind(std::vector<int64_t> key,
                                                                    const std::vector<const TensorType*>& in,
                                                                    const std::vector<int64_t>& integers,
                                                                    const std::vector<double>& reals,
                                                                    std::string& why) const {
  const Attrs arguments = arguments_of_program(integers, reals);
  const GilRelease others_run;
  const std::string_view text(reinterpret_cast<const char*>(key.data()), key.size() * sizeof(int64_t));
  auto e = program_->find(device_, text, in.data(), arguments, why);
  if (!e) return nullptr;
  const bool brief = is_brief(*e);
  auto capture = captures_ ? captures_->of(e) : nullptr;
  return std::make_shared<const Bound>(Bound{std::move(key), std::move(e), std::move(capture), brief});
}

std::shared_ptr<const CompiledProgram::Bound> CompiledProgram::bound_for(Match& m, std::string& why) {
  // The device, dtypes and ranks are those of the guards.
  std::vector<int64_t>& key = m.key;
  key.clear();
  for (PyObject* const o : m.arrays)
    if (o) key.insert(key.end(), tensor_of(o).dims, tensor_of(o).dims + tensor_of(o).rank());
  add_numbers(key, m.integers, m.reals);
  if (last_ && last_->key == key && is_current(*last_->executable)) [[likely]]
    return last_;
  std::vector<Tensor> held = operands(m);  // other threads may change the caller's arrays without the GIL
  auto bound = bind(key, types_of(held), m.integers, m.reals, why);
  if (bound) last_ = bound;
  return bound;
}

std::vector<Tensor> CompiledProgram::operands(const Match& m) const {
  std::vector<Tensor> all(m.arrays.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (m.arrays[i]) all[i] = tensor_of(m.arrays[i]);
    else all[i].set_type(DType::u32, &device_), all[i].set_shape(kKeyShape);
  return all;
}

std::vector<Tensor> CompiledProgram::operands(const Match& m, std::vector<Tensor>& keys) const {
  std::vector<Tensor> all = operands(m);
  for (size_t i = 0; i < all.size(); ++i)
    if (!m.arrays[i]) all[i] = std::move(keys[i]);
  return all;
}

std::optional<CompiledProgram::Ready> CompiledProgram::ready(Match& m, Miss& miss) {
  std::shared_ptr<const Bound> bound = bound_for(m, miss.why);
  if (!bound) return std::nullopt;
  auto c = constants(*bound->executable, m.reals, miss);
  if (!c) return std::nullopt;
  return Ready{std::move(bound), std::move(*c)};
}

std::shared_ptr<const Executable> CompiledProgram::prepare(Match& m, Miss& miss) {
  const auto found = ready(m, miss);
  return found ? found->bound->executable : nullptr;
}

std::vector<Tensor> CompiledProgram::drawn(const Constants& c, bool goes_on) const {
  if (effects_.draws.empty()) return {};
  std::vector<Tensor> all(guards_.words.size());
  for (const Draws& d : effects_.draws) {
    const auto [seed, begin] =
        goes_on ? d.generator->draw(4 * c.at(d.total).read<uint64_t>()) : d.generator->state();
    for (const Draws::Draw& one : d.draws) {
      const uint64_t key[] = {seed, begin + c.at(one.offset).read<uint64_t>()};
      all[size_t(one.input)] = upload(key, DType::u32, kKeyShape, device_);
    }
  }
  return all;
}

void CompiledProgram::give_away(const Match& m) const {
  if (effects_.donated.empty()) return;
  const auto line = lazy("_record", "user_line")().cast<std::string>();
  for (const auto& [input, name] : effects_.donated)
    leave_without_elements(m.arrays[size_t(input)], "[compile] '" + name + "' was donated to " + function_ +
                                                        " at " + line + " and is gone: use what the call returned");
}

bool is_refusal(const Error& e) {
  return e.kind == ErrorKind::value || e.kind == ErrorKind::index || e.kind == ErrorKind::type ||
         e.kind == ErrorKind::axis;
}

PyObject* CompiledProgram::run(Match& m, Miss& miss) {
  refuse_reentry();
  const ContextEngines engines;
  if (recording()) [[unlikely]]
    name_recorded_thread();
  const std::optional<Ready> found = [&]() -> std::optional<Ready> {
    try {
      return ready(m, miss);
    } catch (const Error& e) {
      if (!is_refusal(e)) throw;
      miss = {e.what(), true};
      return std::nullopt;
    }
  }();
  if (!found) return nullptr;
  const auto& [bound, c] = *found;
  std::vector<Tensor> keys = drawn(c);
  if (!guards_.still_match(m)) {  // where the GIL was released, another thread may have donated an array
    miss.why = "an array was donated by another thread";
    return nullptr;
  }
  std::vector<Tensor> outputs =
      bound->brief && effects_.donated.empty() ? run_briefly(m, c, keys) : run_for_long(m, *found, keys);
  for (const auto& [input, output] : effects_.written) tensor_of(m.arrays[size_t(input)]) = outputs[size_t(output)];
  return result(m, c, outputs);
}

// Holds the GIL, without which the caller's arrays might change.
std::vector<Tensor> CompiledProgram::run_briefly(Match& m, const Constants& c,
                                                 const std::vector<Tensor>& keys) const {
  const size_t n = program_->program().outputs.size();
  std::vector<Tensor> made(n);
  std::vector<Tensor*> out(n);
  m.operands.clear();
  for (size_t i = 0; i < m.arrays.size(); ++i)
    m.operands.push_back(m.arrays[i] ? &tensor_of(m.arrays[i]) : &keys[i]);
  for (size_t i = 0; i < n; ++i) out[i] = &made[i];
  replay(c.executable, m.operands.data(), out.data(), c.given());
  bring_over(made);
  return made;
}

std::vector<Tensor> CompiledProgram::run_for_long(const Match& m, const Ready& r, std::vector<Tensor>& keys) const {
  std::vector<Tensor> in = operands(m, keys);
  give_away(m);
  const GilRelease others_run;
  const Constants& c = r.constants;
  std::vector<Tensor> made = r.bound->capture ? r.bound->capture->run(std::move(in), c.given())
                                              : replay(c.executable, std::move(in), nullptr, c.given());
  bring_over(made);
  return made;
}

bool CompiledProgram::compare_groups(Match& m, Miss& miss, const CompareGroup& compare) {
  const auto found = ready(m, miss);
  if (!found) return false;
  const Executable& e = *found->bound->executable;
  std::vector<Tensor> keys = drawn(found->constants, false);
  std::vector<Tensor> in = operands(m, keys);
  const GilRelease others_run;
  replay_and_compare(e, std::move(in), found->constants.given(), [&](const GroupResult& r) { compare(e, r); });
  return true;
}

// Results that are constants are in the host's memory.
void CompiledProgram::bring_over(std::vector<Tensor>& results) const {
  for (Tensor& t : results)
    if (!t.device) t = materialise(t, device_);
}

PyObject* CompiledProgram::result(const Match& m, const Constants& c, std::vector<Tensor>& outputs) const {
  std::vector<py::object> made;
  made.reserve(outputs.size());
  for (Tensor& t : outputs) made.push_back(wrap(std::move(t)));
  return Builder(effects_.returned, m, c, made).next().release().ptr();
}

int CompiledProgram::visit(visitproc visit, void* arg) const {
  for (const Draws& d : effects_.draws) Py_VISIT(d.object.ptr());
  for (const Returned& r : effects_.returned) Py_VISIT(r.what.ptr());
  return guards_.visit(visit, arg);
}
}  // namespace dovetail::bindings
