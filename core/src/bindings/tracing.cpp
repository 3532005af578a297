// Decompositions become programs here: the runtime asks for one, dovetail._trace runs the decomposition of the
// schema on tracers.
#include <pybind11/stl.h>

#include <deque>

#include "bindings/array.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/numbers.hpp"
#include "dispatch/program.hpp"

namespace dovetail::bindings {
namespace {
// Called by the runtime without its locks and perhaps without the GIL.
std::shared_ptr<const Program> trace(const Invocation& inv, const DType* dtypes) {
  py::gil_scoped_acquire gil;
  const auto shared = std::make_shared<ProgramBuilder>();  // a decomposition may keep its tracers
  ProgramBuilder& builder = *shared;
  py::list operands;
  for (int i = 0; i < inv.n_in; ++i)
    operands.append(inv.in[i] ? py::object(py::int_(builder.input(*inv.in[i], dtypes[i]))) : py::none());
  py::dict attributes;
  int i = 0;
  for (const ParamSpec& p : inv.op.spec.params)
    if (!is_operand(p.kind)) attributes[p.name.c_str()] = attr_value(inv.attrs.at[i++]);
  try {
    const py::object outputs = lazy("_trace", "run_decomposition")(inv.op.spec.name, py::cast(shared), operands,
                                                                   inv.op.variadic, attributes);
    return builder.finish(outputs.cast<std::vector<int>>());
  } catch (py::error_already_set& e) {
    const py::object unsupported = lazy("_trace", "Unsupported");
    if (!e.matches(unsupported)) throw;
    inv.fail(ErrorKind::not_implemented, std::string(py::str(e.value())));
  }
}

py::tuple describe(const ProgramBuilder& b, int value) {
  const Tensor& t = b.value(value);
  py::tuple shape(t.rank());
  for (int i = 0; i < t.rank(); ++i) shape[i] = py::int_(t.size(i));
  return py::make_tuple(shape, info(t.dtype).name);
}

// Operands are value numbers, None, or Python numbers, which become constants of the arrays' dtype.
int record(ProgramBuilder& b, const std::string& name, const py::list& operands, const py::dict& attributes) {
  const Op& o = op(name);
  NumberDType dtypes(o);
  for (size_t i = 0; i < operands.size(); ++i)
    if (py::isinstance<py::int_>(operands[i])) dtypes.add_array(int(i), b.value(operands[i].cast<int>()).dtype);
  std::vector<int> in;
  for (size_t i = 0; i < operands.size(); ++i) {
    const py::handle x = operands[i];
    if (x.is_none()) {
      in.push_back(-1);
    } else if (py::isinstance<py::int_>(x)) {
      in.push_back(x.cast<int>());
    } else {  // (number,)
      const py::object number = x.cast<py::tuple>()[0];
      const DType dtype = dtypes.of(int(i), own_dtype(number.ptr()));
      in.push_back(b.constant(scalar_from(number.ptr(), dtype, name.c_str())));
    }
  }
  Attrs attrs;
  std::deque<py::object> keep;
  int i = 0;
  for (const ParamSpec& p : o.spec.params) {
    if (is_operand(p.kind)) continue;
    if (attributes.contains(p.name.c_str())) {
      keep.push_back(attributes[p.name.c_str()]);
      set_attr(o, attrs, i++, p, keep.back().ptr());
    } else {
      if (p.fallback.kind == AttrDefault::required)
        throw Error(ErrorKind::type, "[" + name + "] misses the argument '" + p.name + "'");
      set_default(attrs, i++, p);
    }
  }
  return b.call(o, in, attrs);
}
}  // namespace

py::object lazy(const char* module, const char* name) {
  const py::str full(std::string("dovetail.") + module);
  py::object found =
      py::reinterpret_steal<py::object>(PyImport_GetModule(full.ptr()));  // an import costs 5 us each time
  if (!found) {
    if (PyErr_Occurred()) throw py::error_already_set();
    found = py::reinterpret_steal<py::object>(PyImport_Import(full.ptr()));
    if (!found) throw py::error_already_set();
    found = py::reinterpret_steal<py::object>(PyImport_GetModule(full.ptr()));
  }
  return found.attr(name);
}

void make_tracing(py::module_& m) {
  py::class_<ProgramBuilder, std::shared_ptr<ProgramBuilder>>(
      m, "ProgramBuilder", "Records a decomposition's calls; made by the runtime.")
      .def("describe", describe, "(shape, dtype name) of a value.")
      .def("call", record, "Records a call and returns its first output's number; further outputs follow it.")
      .def("constant", [](ProgramBuilder& b, const py::object& number, const py::object& dtype) {
        return b.constant(scalar_from(number.ptr(), to_dtype(dtype.ptr()), "constant"));
      });
  make_with_new(m.attr("ProgramBuilder"));
  decomposition_tracer = trace;
}
}  // namespace dovetail::bindings
