// The type of compiled functions: a call finds its program and runs it; dovetail._compile makes programs.
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>

#include "bindings/autocast.hpp"
#include "bindings/compiled_groups.hpp"
#include "bindings/interchange.hpp"
#include "bindings/plain_value.hpp"
#include "bindings/recorder.hpp"
#include "device/environment.hpp"
#include "device/log.hpp"
#include "dispatch/lower.hpp"

namespace dovetail::bindings {
namespace {
using Programs = std::vector<std::shared_ptr<CompiledProgram>>;
using ProgramsPtr = GilShared<Programs>;

struct Compiled {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *weakrefs, *dict;
  PyObject* function;
  PyObject* missed;  // called where no program is right: missed(self, values, n_extra, keywords, why, refused)
  Parameters* parameters;
  // The last used one first. A call holds the vector that it goes through: others may exchange it meanwhile.
  ProgramsPtr* programs;
  std::shared_ptr<Captures>* captures;  // nullptr in it: nothing is captured
};
PyTypeObject* compiled_type;

thread_local int off = 0;

// Not where DOVETAIL_COMPILE=0.
bool compiles() {
  static const bool value = environment_switch("DOVETAIL_COMPILE", true);
  return value;
}

// Not where DOVETAIL_COMPILE_CAPTURE=0.
bool captures() {
  static const bool value = environment_switch("DOVETAIL_COMPILE_CAPTURE", true);
  return value;
}

Compiled& of(PyObject* o) { return *reinterpret_cast<Compiled*>(o); }

Compiled& checked(const py::object& o) {
  if (!Py_IS_TYPE(o.ptr(), compiled_type)) throw Error(ErrorKind::type, "[compile] expected a compiled function");
  return of(o.ptr());
}

void move_to_front(Compiled& self, const std::shared_ptr<CompiledProgram>& used) {
  Programs next = **self.programs;
  const auto at = std::ranges::find(next, used);
  if (at == next.end()) return;
  std::rotate(next.begin(), at, at + 1);
  *self.programs = ProgramsPtr::make(std::move(next));
}

// nullptr without an exception: no program is right for the arguments.
PyObject* run_first_right(Compiled& self, const BoundArguments& given, Miss& miss) {
  const ProgramsPtr programs = *self.programs;
  OwnMatch match;
  for (const auto& p : *programs) {
    if (!p->match(given, *match)) continue;
    PyObject* const result = p->run(*match, miss);
    if (!result && !PyErr_Occurred()) continue;
    if (p != programs->front()) move_to_front(self, p);
    return result;
  }
  return nullptr;
}

py::tuple tuple_of(std::span<PyObject* const> objects) {
  py::tuple all(objects.size());
  for (size_t i = 0; i < objects.size(); ++i) all[i] = py::reinterpret_borrow<py::object>(objects[i]);
  return all;
}

PyObject* call_compiled(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) try {
  Compiled& self = of(object);
  const auto eagerly = [&] { return PyObject_Vectorcall(self.function, args, nargsf, kwnames); };
  if (recorder() || off || !compiles()) [[unlikely]]
    return eagerly();
  BoundArguments given;
  if (!given.bind(*self.parameters, args, int(PyVectorcall_NARGS(nargsf)), kwnames)) return eagerly();
  Miss miss;
  if (PyObject* const result = run_first_right(self, given, miss); result || PyErr_Occurred()) [[likely]]
    return result;
  const auto keep = py::reinterpret_borrow<py::object>(object);
  return py::reinterpret_borrow<py::object>(self.missed)(keep, tuple_of(given.values), given.n_extra,
                                                         tuple_of(given.keywords), str_of(miss.why),
                                                         py::bool_(miss.refused))
      .release()
      .ptr();
} catch (...) {
  set_python_error();
  return nullptr;
}

// ---- the object -------------------------------------------------------------------------------------------------
int traverse(PyObject* object, visitproc visit, void* arg) {
  Compiled& self = of(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self.dict);
  Py_VISIT(self.function);
  Py_VISIT(self.missed);
  for (const py::object& d : self.parameters->defaults) Py_VISIT(d.ptr());
  if (self.programs->is_only_holder())  // no call goes through them
    for (const auto& p : **self.programs)
      if (p.use_count() == 1)
        if (const int stop = p->visit(visit, arg)) return stop;
  return 0;
}

int clear(PyObject* object) {
  Compiled& self = of(object);
  Py_CLEAR(self.dict);
  Py_CLEAR(self.function);
  Py_CLEAR(self.missed);
  self.parameters->defaults.clear();
  self.parameters->names.clear();
  const auto dropped = std::exchange(*self.programs, ProgramsPtr::make());
  return 0;
}

void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  Compiled& self = of(object);
  if (self.weakrefs) PyObject_ClearWeakRefs(object);
  clear(object);
  delete self.parameters;
  delete self.programs;
  delete self.captures;
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "[compile] dovetail.compile(function) makes compiled functions");
  return nullptr;
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Compiled, vectorcall), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Compiled, weakrefs), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Compiled, dict), READONLY, nullptr},
                         {"__wrapped__", T_OBJECT, offsetof(Compiled, function), READONLY, nullptr},
                         {}};
PyGetSetDef getters[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}
PyType_Slot slots[] = {{Py_tp_call, slot(PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getters},
                       {Py_tp_traverse, slot(traverse)},
                       {Py_tp_clear, slot(clear)},
                       {Py_tp_dealloc, slot(dealloc)},
                       {Py_tp_new, slot(refuse_new)},
                       {}};
PyType_Spec spec{"dovetail.CompiledFunction", sizeof(Compiled), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

// ---- made in Python ---------------------------------------------------------------------------------------------
// parameters: (name, default or None, is there one) of each; counts as in Parameters.
py::object make_compiled(const py::object& function, const py::object& missed,
                         const std::vector<std::tuple<py::str, py::object, bool>>& named, int n_positional_only,
                         int n_positional, bool extra_positional, bool extra_keywords, bool capture) {
  auto parameters = std::make_unique<Parameters>();
  parameters->n_positional_only = n_positional_only, parameters->n_positional = n_positional;
  parameters->extra_positional = extra_positional, parameters->extra_keywords = extra_keywords;
  for (const auto& [name, value, given] : named) {
    PyObject* interned = py::object(name).release().ptr();
    PyUnicode_InternInPlace(&interned);
    parameters->names.push_back(py::reinterpret_steal<py::object>(interned));
    parameters->defaults.push_back(given ? value : py::object());
  }
  auto* self = PyObject_GC_New(Compiled, compiled_type);
  if (!self) throw py::error_already_set();
  self->vectorcall = call_compiled;
  self->weakrefs = self->dict = nullptr;
  self->function = function.inc_ref().ptr(), self->missed = missed.inc_ref().ptr();
  self->parameters = parameters.release();
  self->programs = new ProgramsPtr(ProgramsPtr::make());
  self->captures = new std::shared_ptr<Captures>(capture && captures() ? std::make_shared<Captures>() : nullptr);
  PyObject_GC_Track(self);
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(self));
}

template <size_t N>
uint8_t kind_of(const char* const (&names)[N], const py::handle& name) {
  const auto found = std::ranges::find(names, name.cast<std::string>());
  if (found == std::end(names)) throw Error(ErrorKind::value, "[compile] no such kind: " + shown(name.ptr()));
  return uint8_t(found - std::begin(names));
}

// (kind, n, object, keys) of each.
std::vector<Part> parts_of(const py::list& given, Guards& guards) {
  static constexpr const char* kinds[] = {"array", "real",     "integer", "value", "object",
                                          "owner", "sequence", "dict",    "fields"};
  std::vector<Part> parts;
  for (const py::handle item : given) {
    const auto [kind, n, what, keys] =
        item.cast<std::tuple<py::str, uint32_t, py::object, std::vector<py::object>>>();
    Part& p = parts.emplace_back(Part{Part::Kind(kind_of(kinds, kind)), n, what, what.ptr(), keys, {}});
    const bool number = p.kind == Part::real || p.kind == Part::integer;
    if (p.kind == Part::owner || (number && what.is_none())) p.what = py::object();
    if (p.kind == Part::fields) {
      for (const py::object& key : keys)
        p.hops.push_back({py::isinstance<py::str>(key) ? Hop::attribute : Hop::slot, key});
      p.keys.clear();
    }
    if (p.kind == Part::object || p.kind == Part::owner)
      guards.n_objects = std::max<size_t>(guards.n_objects, n + 1);
    if (number) guards.n_arguments = std::max<size_t>(guards.n_arguments, n + 1);
  }
  return parts;
}

constexpr const char* hop_kinds[] = {"constant", "argument", "attribute", "slot",
                                     "lookup",   "item",     "element",   "key_at"};

// (kind, key, position, parent, input, same, expectation, what, length, keys or None) of each.
std::vector<Step> steps_of(const py::list& given) {
  static constexpr const char* expectations[] = {"nothing", "type", "identity", "value"};
  std::vector<Step> steps;
  for (const py::handle item : given) {
    auto [kind, key, at, parent, input, same, expected, what, length, keys] = item.cast<
        std::tuple<py::str, py::object, Py_ssize_t, int, int, int, py::str, py::object, Py_ssize_t, py::object>>();
    Expectation e{Expectation::Kind(kind_of(expectations, expected)), std::move(what), length, {}};
    if (!keys.is_none()) e.keys = py::tuple(keys);
    steps.push_back({{Hop::Kind(kind_of(hop_kinds, kind)), std::move(key), at}, parent, input, same, std::move(e)});
  }
  return steps;
}

py::object follow_hop(const py::str& kind, const py::object& key, Py_ssize_t at, const py::object& parent,
                      const py::object& missing) {
  PyObject* const found = Hop{Hop::Kind(kind_of(hop_kinds, kind)), key, at}.follow(parent.ptr());
  return found ? py::reinterpret_steal<py::object>(found) : missing;
}

// (kind, n, object, keys) of each; an integer or real names a value of the program that is a constant.
std::vector<Returned> returned_of(const py::list& given, const Lowered& program);

// Of the lowered program; `value` is one of the program as it was traced.
size_t constant_at(const Lowered& lowered, int value) {
  const auto& constants = lowered.program->constants;
  const auto found = std::ranges::find(constants, lowered.values.at(size_t(value)), &Program::Constant::value);
  if (found == constants.end())
    throw Error(ErrorKind::value, "[compile] value " + std::to_string(value) + " is no constant");
  return size_t(found - constants.begin());
}

std::vector<Returned> returned_of(const py::list& given, const Lowered& program) {
  static constexpr const char* kinds[] = {"output", "input", "object", "value", "integer",
                                          "real",   "tuple", "list",   "dict",  "made"};
  std::vector<Returned> parts;
  for (const py::handle item : given) {
    auto [kind, n, what, keys] = item.cast<std::tuple<py::str, uint32_t, py::object, std::vector<py::object>>>();
    Returned& r = parts.emplace_back(Returned{Returned::Kind(kind_of(kinds, kind)), n, what, keys});
    if (r.kind == Returned::integer || r.kind == Returned::real) r.n = uint32_t(constant_at(program, int(n)));
  }
  return parts;
}

// (generator, its core, value of the total, [(input, value of the offset)]) of each generator.
std::vector<Draws> draws_of(const py::list& given, const Lowered& program) {
  std::vector<Draws> all;
  for (const py::handle item : given) {
    const auto [object, core, total, draws] =
        item.cast<std::tuple<py::object, py::object, int, std::vector<std::pair<int, int>>>>();
    Draws& d = all.emplace_back(Draws{object, core.cast<Generator*>(), constant_at(program, total), {}});
    for (const auto& [input, offset] : draws) d.draws.push_back({input, constant_at(program, offset)});
  }
  return all;
}

// As it is traced where the device lacks a kernel, which a run will say. `traced`: the sizes of
// the inputs while it was traced, and the numbers.
Lowered lowered_for(
    Device& device, const std::shared_ptr<const Program>& program,
    const std::tuple<std::vector<std::vector<int64_t>>, std::vector<int64_t>, std::vector<double>>& traced,
    bool raise) {
  const auto& [shapes, integers, reals] = traced;
  std::vector<TensorType> types(shapes.size());
  std::vector<const TensorType*> in;
  for (size_t i = 0; i < types.size(); ++i) {
    types[i].dtype = program->inputs.at(i).dtype;
    types[i].set_shape(shapes[i]);
    in.push_back(&types[i]);
  }
  try {
    return lower(program, in.data(), arguments_of_program(integers, reals), device, {.raise = raise, .fold = true});
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
  }
  Lowered same{program, std::vector<int>(size_t(program->n_values))};
  std::iota(same.values.begin(), same.values.end(), 0);
  return same;
}

std::shared_ptr<CompiledProgram> make_program(
    const std::shared_ptr<RunnableProgram>& program, const py::object& device, bool on_default_device,
    const py::list& parts, int n_extra, const std::vector<py::object>& keywords, const py::list& steps,
    const std::vector<py::object>& inputs, const std::vector<std::pair<int, int>>& written,
    const std::vector<std::pair<int, std::string>>& donated, const py::list& draws, const py::list& returned,
    const std::string& function, bool rounding_each,
    const std::tuple<std::vector<std::vector<int64_t>>, std::vector<int64_t>, std::vector<double>>& traced) {
  Device& d = to_device(device.ptr());
  const Lowered lowered = lowered_for(d, program->shared(), traced, !rounding_each);
  const Program& p = *lowered.program;
  Guards guards;
  guards.parts = parts_of(parts, guards);
  guards.n_extra = n_extra, guards.keywords = keywords;
  guards.steps = steps_of(steps);
  // An input is None (an array of the arguments or captured), an Array that is kept, or False: a draw.
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor t;
    t.set_type(p.inputs.at(i).dtype, &d);
    t.set_rank(int(p.inputs[i].shape.size()));
    guards.words.push_back(inputs[i].ptr() == Py_False ? 0 : word_of(t));
    if (is_array(inputs[i].ptr())) guards.kept.emplace_back(i, inputs[i]);
  }
  CompiledProgram::Effects effects{written, donated, draws_of(draws, lowered), returned_of(returned, lowered)};
  using Fuse = RunnableProgram::Fuse;
  auto fused = std::make_shared<RunnableProgram>(lowered.program, rounding_each ? Fuse::rounding_each : Fuse::yes);
  return std::make_shared<CompiledProgram>(std::move(fused), d, on_default_device, lower_dtype_here(d),
                                           std::move(guards), std::move(effects), function);
}

void add(const py::object& compiled, const std::shared_ptr<CompiledProgram>& program) {
  Compiled& self = checked(compiled);
  program->capture_in(*self.captures);
  Programs next = **self.programs;
  next.insert(next.begin(), program);
  *self.programs = ProgramsPtr::make(std::move(next));
}

void drop(const py::object& compiled, const std::shared_ptr<RunnableProgram>& program) {
  Compiled& self = checked(compiled);
  Programs next = **self.programs;
  std::erase_if(next, [&](const auto& p) { return p->program() == program; });
  *self.programs = ProgramsPtr::make(std::move(next));
}

// (whether a program was right, its result)
py::tuple run(const py::object& compiled, const py::tuple& values, int n_extra, const py::tuple& keywords) {
  Miss miss;
  BoundArguments given;
  given.set(values, n_extra, keywords);
  PyObject* const result = run_first_right(checked(compiled), given, miss);
  if (!result && PyErr_Occurred()) throw py::error_already_set();
  return py::make_tuple(result != nullptr, result ? py::reinterpret_steal<py::object>(result) : py::none());
}

std::shared_ptr<CompiledProgram> program_of(const py::object& compiled,
                                            const std::shared_ptr<RunnableProgram>& program) {
  for (const auto& p : **checked(compiled).programs)
    if (p->program() == program) return p;
  throw Error(ErrorKind::value, "[compile] the function has no such program");
}

// Which step does not hold, -1: none, or the arguments.
int failing_step(const py::object& compiled, const std::shared_ptr<RunnableProgram>& program,
                 const py::tuple& values, int n_extra, const py::tuple& keywords) {
  BoundArguments given;
  given.set(values, n_extra, keywords);
  OwnMatch match;
  int failed = -1;
  program_of(compiled, program)->match(given, *match, &failed);
  return failed;
}

// (the program that a call runs, or None, why it is None, its numbers, its steps, how it is captured)
py::tuple prepare(const py::object& compiled, const py::tuple& values, int n_extra, const py::tuple& keywords) {
  const ProgramsPtr programs = *checked(compiled).programs;
  BoundArguments given;
  given.set(values, n_extra, keywords);
  OwnMatch match;
  Miss miss;
  std::exception_ptr refusal;
  for (const auto& p : *programs) try {
      if (!p->match(given, *match)) continue;
      if (const auto executable = p->prepare(*match, miss))
        return py::make_tuple(p->program(), "", match->integers, match->reals, launches_of(*executable),
                              p->capture_state(*executable));
    } catch (const Error& e) {
      if (!is_refusal(e)) throw;
      refusal = std::current_exception();
    }
  if (refusal) std::rethrow_exception(refusal);
  return py::make_tuple(py::none(), str_of(miss.why), py::list(), py::list(),
                        py::make_tuple(0, 0, py::list(), py::list()), "");
}

std::vector<std::string> capture_states(const py::object& compiled) {
  const std::shared_ptr<Captures> all = *checked(compiled).captures;
  return all ? all->states() : std::vector<std::string>();
}

py::list compare(const py::object& compiled, const std::shared_ptr<RunnableProgram>& program,
                 const py::tuple& values, int n_extra, const py::tuple& keywords) {
  BoundArguments given;
  given.set(values, n_extra, keywords);
  OwnMatch match;
  Miss miss;
  const auto found = program_of(compiled, program);
  if (!found->match(given, *match)) throw Error(ErrorKind::value, "[compile] the program is not one for this call");
  return compare_groups(*found, *match, miss);
}

// Of no elements: what stands for an argument where nothing runs.
py::object abstract_array(const py::object& dtype, const std::vector<int64_t>& shape, const py::object& device) {
  Tensor t;
  t.set_type(to_dtype(dtype.ptr()), &to_device(device.ptr()));
  t.set_shape(shape);
  return wrap(std::move(t));
}

class Off {
 public:
  void enter() { ++off; }
  void exit(const py::args&) { --off; }
};
}  // namespace

void make_compiled_functions(py::module_& m) {
  compiled_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(m.ptr(), &spec, nullptr));
  if (!compiled_type) throw py::error_already_set();
  m.attr("CompiledFunction") = py::handle(reinterpret_cast<PyObject*>(compiled_type));
  py::class_<CompiledProgram, std::shared_ptr<CompiledProgram>>(m, "CompiledProgram",
                                                                "A program with its guards and effects.")
      .def_property_readonly("program", [](const CompiledProgram& p) { return p.program(); });
  make_with_new(m.attr("CompiledProgram"), py::cpp_function(make_program));
  m.def("make_compiled", make_compiled, "A compiled function without programs.");
  m.def("add_compiled_program", add, "The compiled function tries this program first.");
  m.def("drop_compiled_program", drop, "The compiled function forgets the program.");
  m.def("failing_step", failing_step,
        "The captured object that is not as a program expects it, -1 for none, or where the arguments are not.");
  m.def("follow_hop", follow_hop,
        "The object to which a hop leads, by its kind, key and position, from another object; `missing` for none.");
  m.def(
      "same_value", [](const py::object& a, const py::object& b) { return same_value(a.ptr(), b.ptr()); },
      "Whether two plain values, or containers of them, are equal and of one type.");
  m.def(
      "prepare_compiled", prepare,
      "Finds the program that a call with these arguments runs, and makes its binding: (program or None, why None, "
      "integers and reals among the arguments, and how it runs: its launches, those without groups, nodes and name "
      "of "
      "each group, for each node why it is in none; how it is captured, \"\" where the device does not capture).");
  m.def("capture_states", capture_states, "Of each recent binding of a compiled function how it is captured.");
  m.def("compare_groups", compare,
        "Runs a program for these arguments node by node, and its groups beside their nodes: of each group (nodes, "
        "name, results), of each result (dtype, shape, user's line, elements by the group and by the nodes).");
  m.def(
      "groups_of", groups_of,
      "How devices run a program in groups: of each way (device, seconds that it took to make, how many nodes run "
      "by themselves, (name, user's line) of each group).");
  m.def("abstract_array", abstract_array, "An array without elements, for prepare_compiled.");
  m.def("run_compiled", run, "(whether a program was right, its result) for arguments by parameter.");
  m.def(
      "log_compile", [](const std::string& text) { log(Log::trace, 3, text); },
      "A line of the log, at debug level.");
  m.def("compile_is_off", [] { return off > 0 || !compiles(); });
  py::class_<Off>(m, "compile_off", "Within it, this thread runs compiled functions as ordinary ones.")
      .def("__enter__", [](Off& o) { o.enter(); })
      .def("__exit__", [](Off& o, const py::args& raised) { o.exit(raised); });
  make_with_new(m.attr("compile_off"),
                py::cpp_function([] { return new Off; }, py::return_value_policy::take_ownership));
}
}  // namespace dovetail::bindings
