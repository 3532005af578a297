#include "bindings/compiled_program.hpp"

#include <algorithm>
#include <bit>

#include "bindings/autocast.hpp"
#include "bindings/engines.hpp"
#include "bindings/interchange.hpp"
#include "device/guard.hpp"
#include "device/timeline.hpp"
#include "dispatch/execute.hpp"
#include "few.hpp"

namespace dovetail::bindings {
namespace {
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
          std::span<PyObject* const> made)
      : parts_(parts), match_(match), constants_(constants), made_(made) {}

  py::object next() {
    const Returned& p = parts_[at_++];
    switch (p.kind) {
      case Returned::output: return py::reinterpret_borrow<py::object>(made_[p.n]);
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
  const std::span<PyObject* const> made_;
  size_t at_ = 0;
};

// Arrays of one run: references, which are dropped at the end.
class NewArrays {
 public:
  explicit NewArrays(size_t n) : at_(n) {
    for (PyObject*& o : at_) o = nullptr;
    for (PyObject*& o : at_)
      if (!(o = new_array())) throw py::error_already_set();
  }
  ~NewArrays() {
    for (PyObject* const o : at_) Py_XDECREF(o);
  }
  NewArrays(const NewArrays&) = delete;
  std::span<PyObject* const> all() const { return {at_.data(), at_.size()}; }

 private:
  Few<PyObject*, 8> at_;
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

// The device, dtypes and ranks are those of the guards.
template <class F>
bool CompiledProgram::for_key(const Match& m, F f) const {
  for (PyObject* const o : m.arrays) {
    if (!o) continue;
    const Tensor& t = tensor_of(o);
    for (int axis = 0; axis < t.rank(); ++axis)
      if (!f(t.size(axis))) return false;
  }
  for (const int64_t n : m.integers)
    if (!f(n)) return false;
  if (!late_.all)
    for (const double x : m.reals)
      if (!f(std::bit_cast<int64_t>(x))) return false;
  return true;
}

bool CompiledProgram::is_last(const Match& m) const {
  if (!last_) return false;
  const int64_t* at = last_->key.data();
  return for_key(m, [&](int64_t word) { return *at++ == word; }) && is_current(*last_->executable);
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
    if (!v) return miss.add("a number that follows from an argument has no value"), std::nullopt;
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

CompiledProgram::BoundPtr CompiledProgram::bind(const Match& m, Miss& miss) const {
  std::vector<int64_t> key;
  for_key(m, [&](int64_t word) { return key.push_back(word), true; });
  const std::vector<Tensor> held = operands(m);  // other threads may change the caller's arrays without the GIL
  const Attrs arguments = arguments_of_program(m.integers, m.reals);
  const std::string_view text(reinterpret_cast<const char*>(key.data()), key.size() * sizeof(int64_t));
  Bound made;
  std::string why;
  {
    const GilRelease others_run;
    made.executable = program_->find(device_, text, types_of(held).data(), arguments, why);
    if (made.executable && captures_) made.capture = captures_->of(made.executable);
  }
  if (!made.executable) return miss.add(std::move(why)), BoundPtr();
  made.key = std::move(key), made.brief = is_brief(*made.executable);
  return BoundPtr::make(std::move(made));
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

std::optional<CompiledProgram::Ready> CompiledProgram::ready(const Match& m, Miss& miss) {
  const bool known = is_last(m);
  BoundPtr bound = known ? last_ : bind(m, miss);
  if (!bound) return std::nullopt;
  if (!known) last_ = bound;
  auto c = constants(*bound->executable, m.reals, miss);
  if (!c) return std::nullopt;
  return Ready{std::move(bound), std::move(*c), !known};
}

std::shared_ptr<const Executable> CompiledProgram::prepare(Match& m, Miss& miss) {
  const auto found = ready(m, miss);
  return found ? found->bound->executable : nullptr;
}

std::vector<Tensor> CompiledProgram::drawn(const Constants& c, bool goes_on) const {
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
  const bool records = recording();
  if (records) [[unlikely]]
    name_recorded_thread();
  const std::optional<Ready> found = [&]() -> std::optional<Ready> {
    try {
      return ready(m, miss);
    } catch (const Error& e) {
      if (!is_refusal(e)) throw;
      miss.add(e.what(), true);
      return std::nullopt;
    }
  }();
  if (!found) return nullptr;
  const auto& [bound, c, waited] = *found;
  std::vector<Tensor> keys;
  if (!effects_.draws.empty()) keys = drawn(c);
  const bool released = waited || records || !keys.empty();  // the GIL: another thread may have donated an array
  if (released && !guards_.still_match(m)) {
    miss.add("an array was donated by another thread");
    return nullptr;
  }
  const NewArrays outputs(program_->program().outputs.size());
  const std::span<PyObject* const> made = outputs.all();
  const bool checks = debug_checks.load(std::memory_order_relaxed);  // they may warn, which lets others run
  if (bound->brief && effects_.donated.empty() && !checks) run_briefly(m, c, keys, made);
  else run_for_long(m, *found, keys, made);
  for (const auto& [input, output] : effects_.written)
    tensor_of(m.arrays[size_t(input)]) = tensor_of(made[size_t(output)]);
  return Builder(effects_.returned, m, c, made).next().release().ptr();
}

// Holds the GIL, without which the caller's arrays might change.
void CompiledProgram::run_briefly(Match& m, const Constants& c, const std::vector<Tensor>& keys,
                                  std::span<PyObject* const> made) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (!m.arrays[i]) m.operands[i] = &keys[i];
  m.results.resize(made.size());
  for (size_t i = 0; i < made.size(); ++i) m.results[i] = &tensor_of(made[i]);
  replay(c.executable, m.operands.data(), m.results.data(), c.given());
  for (Tensor* const t : m.results)
    if (!t->device) *t = materialise(*t, device_);  // a constant, in the host's memory
}

void CompiledProgram::run_for_long(const Match& m, const Ready& r, std::vector<Tensor>& keys,
                                   std::span<PyObject* const> made) const {
  std::vector<Tensor> in = operands(m, keys);
  give_away(m);
  const GilRelease others_run;
  const Constants& c = r.constants;
  std::vector<Tensor> results = r.bound->capture ? r.bound->capture->run(std::move(in), c.given())
                                                 : replay(c.executable, std::move(in), nullptr, c.given());
  for (size_t i = 0; i < made.size(); ++i)
    tensor_of(made[i]) = results[i].device ? std::move(results[i]) : materialise(results[i], device_);
}

bool CompiledProgram::compare_groups(Match& m, Miss& miss, const CompareGroup& compare) {
  const auto found = ready(m, miss);
  if (!found) return false;
  const Executable& e = *found->bound->executable;
  std::vector<Tensor> keys;
  if (!effects_.draws.empty()) keys = drawn(found->constants, false);
  std::vector<Tensor> in = operands(m, keys);
  const GilRelease others_run;
  replay_and_compare(e, std::move(in), found->constants.given(), [&](const GroupResult& r) { compare(e, r); });
  return true;
}

int CompiledProgram::visit(visitproc visit, void* arg) const {
  for (const Draws& d : effects_.draws) Py_VISIT(d.object.ptr());
  for (const Returned& r : effects_.returned) Py_VISIT(r.what.ptr());
  return guards_.visit(visit, arg);
}
}  // namespace dovetail::bindings
