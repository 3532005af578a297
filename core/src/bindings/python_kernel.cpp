// Kernel rows that run a Python function.
#include <pybind11/stl.h>

#include <array>
#include <deque>
#include <unordered_set>
#include <utility>

#include "bindings/python_device.hpp"
#include "rules/rules.hpp"

namespace dovetail::bindings {
namespace {
struct Kernel {
  const Op* op;
  const dvt_host* host;
  PyObject *function, *query;   // query may be nullptr
  PyObject* names;              // the attributes' names, as keywords
  std::vector<int> attributes;  // their positions in the call
  std::string what;             // "kernel Acme.add"
};

// A row's function does not get the row, so every kernel has a function of its own.
constexpr size_t kSlots = 1024;
std::array<const Kernel*, kSlots> kernels;
size_t n_kernels = 0;  // guarded by the GIL

py::object attribute(const dvt_attr& a) {
  if (a.kind != DVT_A_DTYPE) return attr_value(a);
  const auto dtype = dtype_of(a.v.dt);
  return py::reinterpret_borrow<py::object>(dtype ? dtype_object(*dtype) : Py_None);
}

// function(device, *inputs, *outputs, **attributes)
py::object call_function(const Kernel& k, PyObject* function, PythonDevice& d, const dvt_call& c, Views& views) {
  std::vector<py::object> args{py::reinterpret_borrow<py::object>(d.self)};
  py::list many;
  for (uint32_t i = 0; i < c.n_in; ++i) {
    py::object view = c.in[i] ? views.make(*c.in[i], false, true) : py::none();
    if (k.op->variadic && i + 1 >= uint32_t(k.op->n_in)) many.append(std::move(view));
    else args.push_back(std::move(view));
  }
  if (k.op->variadic) args.push_back(many);
  for (uint32_t i = 0; i < c.n_out; ++i) args.push_back(c.out[i] ? views.make(*c.out[i], true, true) : py::none());
  const size_t n = args.size();
  for (int i : k.attributes) args.push_back(uint32_t(i) < c.n_attr ? attribute(c.attr[i]) : py::none());
  std::vector<PyObject*> pointers;
  for (const py::object& o : args) pointers.push_back(o.ptr());
  PyObject* result = call_python(function, pointers.data(), n, k.names);
  if (!result) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

dvt_status run(const Kernel& k, dvt_device* handle, const dvt_call* c) {
  const Inside python(k.what.c_str());
  if (!python) return fail_at_the_end(k.host, k.what.c_str());
  PythonDevice& d = PythonDevice::of(handle);
  Views views(d);
  try {
    const py::object result = call_function(k, k.function, d, *c, views);
    if (result.is_none()) return DVT_OK;
    PyErr_Format(PyExc_RuntimeError, "%s returned %s: expected it to write to its output and to return nothing",
                 k.what.c_str(), Py_TYPE(result.ptr())->tp_name);
  } catch (py::error_already_set& e) {
    e.restore();
  }
  return fail_with_exception(k.host, k.what.c_str());
}

// The Python function returns True where the kernel serves the call, or a string with the reason why not.
dvt_status query(const Kernel& k, dvt_device* handle, const dvt_call* c, dvt_answer* answer) {
  const std::string what = "query of " + k.what;
  const Inside python(what.c_str());
  if (!python) return fail_at_the_end(k.host, what.c_str());
  PythonDevice& d = PythonDevice::of(handle);
  Views views(d);
  try {
    const py::object result = call_function(k, k.query, d, *c, views);
    if (result.is(py::bool_(true))) return DVT_OK;
    if (!PyUnicode_Check(result.ptr())) {
      PyErr_Format(PyExc_RuntimeError, "%s returned %R: expected True, or why it does not serve the call",
                   what.c_str(), result.ptr());
      throw py::error_already_set();
    }
    static auto& reasons = *new std::unordered_set<std::string>;  // they must outlive the call
    DVT_PUT(answer, dvt_answer, reason, reasons.insert(result.cast<std::string>()).first->c_str());
    return DVT_UNSUPPORTED;
  } catch (py::error_already_set& e) {
    e.restore();
  }
  return fail_with_exception(k.host, what.c_str());
}

template <size_t I>
dvt_status run_slot(dvt_device* d, const dvt_call* c) {
  return run(*kernels[I], d, c);
}
template <size_t I>
dvt_status query_slot(dvt_device* d, const dvt_call* c, dvt_answer* a) {
  return query(*kernels[I], d, c, a);
}
template <size_t... I>
void set_own_functions(dvt_kernel& row, size_t slot, bool has_query, std::index_sequence<I...>) {
  static constexpr decltype(dvt_kernel::run) runs[] = {run_slot<I>...};
  static constexpr decltype(dvt_kernel::query) queries[] = {query_slot<I>...};
  row.run = runs[slot], row.query = has_query ? queries[slot] : nullptr;
}

struct Row {
  dvt_kernel kernel{};
  std::vector<dvt_operand> operands;
};

// From a DType, or from a number of bits that stands for every dtype of that size; 0: every dtype.
DLDataType row_dtype(const py::object& o) {
  return PyLong_Check(o.ptr()) ? DLDataType{DVT_ANY, o.cast<uint8_t>(), 1} : info(to_dtype(o.ptr())).dl;
}

const char* keep(const std::string& text) {
  static auto& texts = *new std::unordered_set<std::string>;
  return texts.insert(text).first->c_str();
}
}  // namespace

void add_rows(const py::dict& from, std::vector<const dvt_kernel*>& rows, const dvt_host* host) {
  if (n_kernels == kSlots)
    throw Error(ErrorKind::runtime, "more than " + std::to_string(kSlots) +
                                        " Python kernels in this process; use fewer Python devices at a time");
  const Op& o = op(from["op"].cast<std::string>());
  const auto version = from["version"].cast<uint32_t>();
  auto* k = new Kernel;
  k->op = &o, k->host = host, k->what = from["what"].cast<std::string>();
  k->function = py::object(from["function"]).inc_ref().ptr();
  const py::object q = from["query"];
  k->query = q.is_none() ? nullptr : q.inc_ref().ptr();
  py::list names;
  int i = 0;
  for (const ParamSpec& p : o.spec.params) {
    if (is_operand(p.kind)) continue;
    if (p.since <= version) k->attributes.push_back(i), names.append(p.name);
    ++i;
  }
  k->names = names.empty() ? nullptr : py::tuple(names).release().ptr();
  const size_t slot = n_kernels++;
  kernels[slot] = k;
  static auto& all_rows = *new std::deque<Row>;
  for (const py::handle h : from["rows"]) {
    Row& row = all_rows.emplace_back();
    for (const py::handle operand : h) {
      const auto [dtype, flags] = operand.cast<std::pair<py::object, uint8_t>>();
      row.operands.push_back({row_dtype(dtype), flags, 0, 0});
    }
    dvt_kernel& r = row.kernel;
    r.struct_size = sizeof r, r.op_version = version;
    r.op = o.kernel_name.c_str(), r.engine = keep(from["engine"].cast<std::string>());
    r.operands = row.operands.data();
    r.n_in = operands_of(o, version), r.n_out = o.spec.n_out;
    r.flags = from["deterministic"].cast<bool>() ? DVT_K_BITWISE_DETERMINISTIC : 0;
    r.max_ulp = from["max_ulp"].cast<float>();
    set_own_functions(r, slot, k->query, std::make_index_sequence<kSlots>());
    rows.push_back(&r);
  }
}

py::tuple row_dtypes(const std::string& name, const py::object& dtype, bool given) {
  const Op& o = op(name);
  const DType t = to_dtype(dtype.ptr());
  TensorType operands[kMaxInputs];
  const TensorType* in[kMaxInputs];
  for (int i = 0; i < o.n_in; ++i) {
    const ParamKind kind = o.operand_kinds[i];
    operands[i].dtype = kind == ParamKind::mask ? DType::b8 : kind == ParamKind::index ? DType::i64 : t;
    in[i] = &operands[i];
  }
  Attrs attrs = o.defaults;
  if (given && o.dtype_attr >= 0) attrs.at[o.dtype_attr] = {DVT_A_DTYPE, 1, {.dt = info(t).dl}};
  DType compute[kMaxInputs], result[kMaxOutputs];
  rules::infer_dtypes({o, in, o.n_in, attrs, compute, result, nullptr}, compute, result);
  py::list inputs, outputs;
  const auto object = [](DType d) { return py::reinterpret_borrow<py::object>(dtype_object(d)); };
  for (int i = 0; i < o.n_in; ++i) inputs.append(object(compute[i]));
  for (uint32_t i = 0; i < o.spec.n_out; ++i) outputs.append(object(result[i]));
  return py::make_tuple(inputs, outputs);
}
}  // namespace dovetail::bindings
