// Decompositions become programs here: the runtime asks for one, dovetail._trace runs the decomposition of the
// schema on tracers.
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>

#include "bindings/python_device.hpp"
#include "bindings/tracing.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/numbers.hpp"
#include "graph/text.hpp"

namespace dovetail::bindings {
namespace {
// A traced program for a control op's attribute.
struct TracedProgram {
  std::shared_ptr<const Program> program;
};

// Called by the runtime without its locks and perhaps without the GIL.
std::vector<int> trace(const Invocation& inv, const std::shared_ptr<ProgramBuilder>& builder,
                       const std::vector<int>& values) {
  py::gil_scoped_acquire gil;
  py::list operands;
  for (const int v : values) operands.append(v >= 0 ? py::object(py::int_(v)) : py::none());
  py::dict attributes;
  int i = 0;
  for (const ParamSpec& p : inv.op.spec.params)
    if (!is_operand(p.kind)) attributes[p.name.c_str()] = attr_value(inv.attrs.at[i++]);
  try {
    return call_lazy("_trace", "run_decomposition", py::str(inv.op.spec.name), py::cast(builder), operands,
                     py::bool_(inv.op.variadic), attributes)
        .cast<std::vector<int>>();
  } catch (py::error_already_set& e) {
    const py::object unsupported = lazy("_trace", "Unsupported");
    if (!e.matches(unsupported)) throw;
    inv.fail(ErrorKind::not_implemented, std::string(py::str(e.value())));
  }
}

py::tuple shape_of(const ProgramBuilder& b, int value) {
  const TensorType& t = b.value(value);
  py::tuple shape(t.rank());
  for (int i = 0; i < t.rank(); ++i) shape[i] = py::int_(t.size(i));
  return shape;
}

// One operand of a recorded call: a value's number, None, or (number, entry): a Python number that is an entry of
// the builder's table, or -1 where it is always the same.
RecordedOperand operand(py::handle x) {
  if (x.is_none()) return {};
  if (py::isinstance<py::int_>(x)) return {.value = x.cast<int>()};
  const auto pair = x.cast<py::tuple>();
  return {.number = PyTuple_GET_ITEM(pair.ptr(), 0), .entry = pair[1].cast<int>()};
}

// The attributes by name, defaults filled in. What they point to lives as long as `keep`.
Attrs attributes_of(const Op& o, const py::dict& attributes, std::deque<py::object>& keep) {
  Attrs attrs = o.defaults;
  uint64_t given = 0;
  int i = 0;
  for (const ParamSpec& p : o.spec.params) {
    if (is_operand(p.kind)) continue;
    if (attributes.contains(p.name.c_str())) {
      keep.push_back(attributes[p.name.c_str()]);
      if (p.kind == ParamKind::program) attrs.at[i] = program_attr(*keep.back().cast<TracedProgram&>().program);
      else set_attr(o, attrs, i, p, keep.back().ptr());
      given |= uint64_t{1} << i;
    }
    ++i;
  }
  expect_attrs(o, given);
  return attrs;
}

// `slots` lists (attribute's name, element or -1, entry) of the numbers among the attributes.
int record(ProgramBuilder& b, const std::string& name, const py::list& operands, const py::dict& attributes,
           const std::vector<std::tuple<std::string, int, int>>& slots) {
  const Op& o = op(name);
  std::vector<RecordedOperand> given;
  for (const py::handle x : operands) given.push_back(operand(x));
  std::deque<py::object> keep;
  const Attrs attrs = attributes_of(o, attributes, keep);
  std::vector<Program::Slot> numbers;
  int i = 0;
  for (const ParamSpec& p : o.spec.params) {
    if (is_operand(p.kind)) continue;
    for (const auto& [attribute, element, entry] : slots)
      if (attribute == p.name) {
        const bool list = attrs.at[i].kind == DVT_A_I64S;  // one number may stand for a list of one
        numbers.push_back({uint8_t(i), int16_t(list ? std::max(element, 0) : -1), entry});
      }
    ++i;
  }
  return record_node(b, o, given, attrs, std::move(numbers));
}

// Inputs were recorded when the traced function first used their values.
TracedProgram close(ProgramBuilder& b, const std::vector<int>& outputs, const std::vector<int>& inputs) {
  b.order_inputs(inputs);
  return {b.finish(outputs)};
}

template <size_t N>
int index_of(const char* const (&names)[N], const std::string& name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) throw Error(ErrorKind::value, "there is no number operation '" + name + "'");
  return int(found - std::begin(names));
}

int number(ProgramBuilder& b, const std::string& op, bool is_real, int x, int y, const py::object& literal) {
  Number n{.op = Number::Op(index_of(number_names, op)), .is_real = is_real, .a = x, .b = y};
  if (n.op == Number::integer) n.i = literal.cast<int64_t>();
  if (n.op == Number::real) n.f = literal.cast<double>();
  return b.number(n);
}

// The decomposition of an op as the library could bring it: its pattern, and the program as JSON. `operands` are
// (dtype, shape) or None. Raises what the op raises for such a call.
py::tuple decomposition_text(const std::string& name, const py::list& operands, const py::dict& attributes) {
  const Op& o = op(name);
  std::vector<Tensor> values(operands.size());
  std::vector<const Tensor*> in;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_none()) {
      in.push_back(nullptr);
      continue;
    }
    const auto given = operands[i].cast<py::tuple>();
    values[i].set_type(to_dtype(given[0].ptr()), nullptr);
    values[i].set_shape(given[1].cast<std::vector<int64_t>>());
    in.push_back(&values[i]);
  }
  std::deque<py::object> keep;
  Attrs attrs = attributes_of(o, attributes, keep);
  Invocation inv(o, nullptr, in.data(), int(in.size()), attrs);
  Tensor out[kMaxOutputs];
  for (uint32_t k = 0; k < o.spec.n_out; ++k) inv.out[k] = &out[k];
  Plan plan;
  inv.infer_abstract(plan);
  inv.plan = &plan;
  return py::make_tuple(decomposition_pattern(inv), to_json(*trace_decomposition(inv)).dump());
}
}  // namespace

int record_node(ProgramBuilder& b, const Op& op, std::span<const RecordedOperand> operands, const Attrs& attrs,
                std::vector<Program::Slot> numbers) {
  const bool control = op.spec.flags & op_control;
  NumberDType dtypes(op);
  for (size_t i = 0; i < operands.size() && !control; ++i)  // operands of control ops have nothing in common
    if (operands[i].value >= 0) dtypes.add_array(int(i), b.value(operands[i].value).dtype);
  std::vector<int> in;
  for (size_t i = 0; i < operands.size(); ++i) {
    const RecordedOperand& x = operands[i];
    if (x.number) {
      const DType dtype = dtypes.of(int(i), own_dtype(x.number));
      in.push_back(b.constant(scalar_of(scalar_from(x.number, dtype, op.spec.name.c_str())), x.entry));
    } else {
      in.push_back(x.value);
    }
  }
  const auto is_bool = [&](int v) { return v >= 0 && b.value(v).dtype == DType::b8; };
  if (const Op* logical = op_for_bools(op); logical && std::ranges::all_of(in, is_bool))
    return b.call(*logical, in, logical->defaults);
  return control ? b.control(op, in, attrs, std::move(numbers)) : b.call(op, in, attrs, std::move(numbers));
}

py::object lazy(const char* module, const char* name) {
  const py::str full(std::string("dovetail.") + module);
  const auto get = [&] { return or_stay([&] { return PyImport_GetModule(full.ptr()); }); };
  py::object found = py::reinterpret_steal<py::object>(get());  // an import costs 5 us each time
  if (!found) {
    if (PyErr_Occurred()) throw py::error_already_set();
    found = py::reinterpret_steal<py::object>(or_stay([&] { return PyImport_Import(full.ptr()); }));
    if (!found) throw py::error_already_set();
    found = py::reinterpret_steal<py::object>(get());
  }
  return found.attr(name);
}

void make_tracing(py::module_& m) {
  py::class_<ProgramBuilder, std::shared_ptr<ProgramBuilder>>(m, "ProgramBuilder", "Records calls as a program.")
      .def("shape", shape_of, "Of a value.")
      .def(
          "dtype", [](const ProgramBuilder& b, int value) { return info(b.value(value).dtype).name; },
          "The name of a value's.")
      .def("call", record, "Records a call and returns its first output's number; further outputs follow it.")
      .def(
          "at", [](ProgramBuilder& b, const std::string& where) { b.at(where); },
          "Sets file:line of the nodes and guards that follow.")
      .def("number", number, "An entry of the table of numbers: (operation, is real, operand, operand, literal).")
      .def(
          "argument",
          [](ProgramBuilder& b, bool is_real, const std::string& name) { return b.argument(is_real, name); },
          "The entry of a number that each call gives.")
      .def(
          "number_constant",
          [](ProgramBuilder& b, int entry, bool is_real) {
            constexpr double real = 0;
            constexpr int64_t integer = 0;
            return b.constant(is_real ? Scalar(DType::f64, &real) : Scalar(DType::i64, &integer), entry);
          },
          "A value without use in the program, for reading an entry of a binding.")
      .def("guard", [](ProgramBuilder& b, const std::string& compare, int x,
                       int y) { b.guard(Guard::Compare(index_of(compare_names, compare)), x, y); })
      .def(
          "fix_sizes", [](ProgramBuilder& b) { b.fix({}, 0); },
          "Guards that every input has the sizes of this trace.")
      .def(
          "outputs_of_last_call", [](const ProgramBuilder& b) { return b.outputs_of_last_call(); },
          "How many outputs the last call has.")
      .def(
          "nested", [](const ProgramBuilder&) { return std::make_shared<ProgramBuilder>(); },
          "A builder for a program that a node of this one will hold.")
      .def(
          "operand",
          [](ProgramBuilder& b, const std::string& dtype, const std::vector<int64_t>& shape) {
            return b.input(to_dtype(py::str(dtype).ptr()), shape);
          },
          "An input of a nested program, of any dtype and sizes when it runs; returns its number.")
      .def("close", close,
           "Ends a nested program, with its inputs in this order; an attribute of the node that holds it.");
  py::class_<TracedProgram>(m, "TracedProgram", "A program within another one; made by ProgramBuilder.close().");
  make_with_new(m.attr("TracedProgram"));
  m.def("decomposition_text", decomposition_text, "(pattern, JSON) of an op's decomposition, for the generator.");
  decomposition_tracer = trace;
}
}  // namespace dovetail::bindings
