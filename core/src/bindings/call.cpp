// Runs an op on Python operands: scalars, the GIL, errors.
#include <algorithm>
#include <cmath>

#include "bindings/array.hpp"
#include "bindings/autocast.hpp"
#include "bindings/engines.hpp"
#include "bindings/python_device.hpp"
#include "device/timeline.hpp"
#include "dispatch/checks.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/numbers.hpp"
#include "text.hpp"

namespace dovetail::bindings {
namespace {
class Call {
 public:
  Call(const Op& op, PyObject* const* operands, int n, Attrs& attrs, Device* device, PyObject* replaced)
      : op_(op), n_(n), inv_(op, device, few_, n, attrs) {
    if (n > kMaxInputs) [[unlikely]]
      many_.resize(n), inv_.in = many_.data();
    gathered_ = gather(operands, n > kMaxInputs ? many_.data() : few_);
    if (mixed_devices_ && n <= kMaxInputs) [[unlikely]]
      join_scalars();
    if (replaced) inv_.replaced = &tensor_of(replaced);
  }
  ~Call() {
    while (n_held_) held(--n_held_).~Tensor();
  }
  bool gathered() const { return gathered_; }
  bool all_bool() const {
    return std::all_of(inv_.in, inv_.in + n_, [](const Tensor* t) { return t && t->dtype == DType::b8; });
  }
  Invocation& invocation() { return inv_; }

  void run() {
    if (recording()) [[unlikely]]
      return record_and_run();
    infer_and_run();
  }

 private:
  void infer_and_run() {
    inv_.infer();
    check_values(inv_);
    // A chosen engine may be the decomposition, whose tracing runs Python code.
    const bool brief = inv_.device->synchronous && inv_.plan->mode == Plan::kernel && !engine_choice;
    if (brief && inv_.work <= kHeavy) [[likely]]
      return inv_.run();
    hold();
    if (inv_.work <= kHeavy) return inv_.run();
    const GilRelease others_run;
    inv_.run();
  }

  [[gnu::noinline, gnu::cold]] void record_and_run() {
    name_recorded_thread();
    const HostSpan span(Activity::op, op_.spec.name.c_str());
    infer_and_run();
  }

  Tensor& held(int i) { return reinterpret_cast<Tensor*>(held_)[i]; }

  // Takes arrays as they are and Python scalars as host scalars of the arrays' dtype. Returns false where an object
  // is neither.
  bool gather(PyObject* const* objects, const Tensor** in) {
    int n_scalars = 0;
    for (int i = 0; i < n_; ++i) {
      in[i] = nullptr;
      if (!objects[i]) continue;
      if (objects[i] == Py_None) {
        if (!is_optional(op_, i)) return false;
        continue;
      }
      if (is_array(objects[i])) [[likely]] {
        expect_elements(objects[i]);
        in[i] = &tensor_of(objects[i]);
        mixed_devices_ |= home_ && home_ != in[i]->device;
        home_ = in[i]->device;
      } else if (is_number(objects[i])) {
        ++n_scalars;
      } else {
        return false;
      }
    }
    if (autocast_used && op_.spec.flags & op_autocast) [[unlikely]]
      cast_operands(in);
    if (!n_scalars) [[likely]]
      return true;
    if (n_scalars > kMaxInputs)
      throw Error(ErrorKind::type, "[" + op_.spec.name + "] expected arrays, got Python numbers");
    NumberDType dtype(op_);
    for (int i = 0; i < n_; ++i)
      if (in[i]) dtype.add_array(i, in[i]->dtype);
    for (int i = 0; i < n_; ++i) {
      PyObject* o = objects[i];
      if (!o || o == Py_None || is_array(o)) continue;
      const DType t = dtype.of(i, own_dtype(o));
      in[i] = new (&held(n_held_)) Tensor(scalar_from(o, t, op_.spec.name.c_str()));
      ++n_held_;
    }
    return true;
  }

  [[gnu::noinline, gnu::cold]] void cast_operands(const Tensor** in) {
    const auto scope = autocast_of_context();
    if (!scope) return;
    for (int i = 0; i < std::min(n_, kMaxInputs); ++i) {
      if (!in[i]) continue;
      Device& device = *in[i]->device;
      const DType to = autocast_dtype(op_, i, in[i]->dtype, lower_dtype(scope.get(), device));
      if (to == in[i]->dtype) continue;
      in[i] = new (&held(n_held_)) Tensor(cast_and_keep(*in[i], to, device));
      ++n_held_;
    }
  }

  // An array without axes on a device of kind cpu joins arrays of another device: its value is read.
  void join_scalars() {
    const auto joins = [](const Tensor* t) { return t && joins_any_device(*t); };
    const auto other = std::find_if(few_, few_ + n_, [&](const Tensor* t) { return t && t->device && !joins(t); });
    if (other == few_ + n_) return;
    for (int i = 0; i < n_; ++i) {
      if (!joins(few_[i]) || few_[i]->device == (*other)->device) continue;
      const Tensor array = *few_[i];
      few_[i] = new (&held(n_held_)) Tensor(as_host_scalar(array));
      ++n_held_;
    }
  }

  // Copies the operands before other threads may run: those may replace an array's value during the call.
  void hold() {
    if (n_ > kMaxInputs) {
      many_held_.reserve(many_.size());
      for (const Tensor*& t : many_)
        if (t) t = &many_held_.emplace_back(*t);
      return;
    }
    for (int i = 0; i < n_; ++i) {
      const Tensor* t = few_[i];
      if (!t || !t->storage) continue;
      few_[i] = new (&held(n_held_)) Tensor(*t);
      ++n_held_;
      if (t == inv_.replaced) inv_.replaced = few_[i];
    }
  }

  const Op& op_;
  const int n_;
  bool gathered_;
  bool mixed_devices_ = false;
  Device* home_ = nullptr;  // of the first array
  Invocation inv_;
  const Tensor* few_[kMaxInputs];
  std::vector<const Tensor*> many_;
  std::vector<Tensor> many_held_;
  int n_held_ = 0;
  alignas(Tensor) std::byte held_[3 * kMaxInputs * sizeof(Tensor)];
};

// By NumPy's rule same_kind a value is cast in place to a dtype of the same or a greater breadth.
int breadth(DType t) {
  switch (info(t).kind) {
    case DKind::boolean: return 0;
    case DKind::unsigned_int: return 1;
    case DKind::signed_int: return 2;
    case DKind::floating: return 3;
    default: return 4;
  }
}

PyObject* run_in_place(Call& call, PyObject* replaced) {
  Tensor result;
  call.invocation().out[0] = &result;
  call.run();
  Tensor& target = tensor_of(replaced);
  if (result.device != target.device)
    call.invocation().fail("an in-place operation keeps the device: got a result on " + result.device->name +
                           ", expected one on " + target.device->name + "; write x = x + y");
  if (!result.same_shape(target))
    call.invocation().fail(ErrorKind::value, "an in-place operation keeps the shape: got a result of " +
                                                 to_string(result.shape()) + ", expected " +
                                                 to_string(target.shape()) + "; write x = x + y");
  if (result.dtype != target.dtype) {
    if (breadth(result.dtype) > breadth(target.dtype))
      call.invocation().fail(ErrorKind::type,
                             std::string("an in-place operation keeps the dtype: got a result of ") +
                                 info(result.dtype).name + ", expected one that " + info(target.dtype).name +
                                 " can hold; write x = x + y, or first x = x.astype(\"" + info(result.dtype).name +
                                 "\")");
    result = cast(result, target.dtype, *call.invocation().device);
  }
  target = std::move(result);
  return Py_NewRef(replaced);
}

PyObject* run_tuple(Call& call, uint32_t n_out) {
  py::tuple results(n_out);
  for (uint32_t i = 0; i < n_out; ++i) {
    results[i] = py::reinterpret_steal<py::object>(new_array());
    call.invocation().out[i] = &tensor_of(PyTuple_GET_ITEM(results.ptr(), i));
  }
  call.run();
  return results.release().ptr();
}
}  // namespace

bool is_optional(const Op& op, int operand) {
  if (op.variadic) return false;
  for (const ParamSpec& p : op.spec.params)
    if (is_operand(p.kind) && operand-- == 0) return p.optional;
  return false;
}

PyObject* call(const Op& op, PyObject* const* operands, int n, Attrs& attrs, Device* device, PyObject* replaced) {
  PyObject* made = nullptr;
  try {
    refuse_reentry();
    const ContextEngines engines;
    Call c(op, operands, n, attrs, device, replaced);
    if (!c.gathered()) return nullptr;
    if (c.all_bool()) [[unlikely]]
      if (const Op* logical = op_for_bools(op)) return call(*logical, operands, n, attrs, device, replaced);
    if (replaced) [[unlikely]]
      return run_in_place(c, replaced);
    if (op.spec.n_out > 1) [[unlikely]]
      return run_tuple(c, op.spec.n_out);
    if (!(made = new_array())) return nullptr;
    c.invocation().out[0] = &tensor_of(made);
    c.run();
    return made;
  } catch (...) {
    Py_XDECREF(made);
    set_python_error();
    return nullptr;
  }
}

// Infers a call without running it and returns ask(call).
template <class Ask>
static auto about_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs, Device* device, Ask ask) {
  refuse_reentry();
  Call c(op, operands, n, attrs, device, nullptr);
  if (!c.gathered()) throw Error(ErrorKind::type, "[" + op.spec.name + "] expected dovetail arrays");
  Tensor out[kMaxOutputs];
  for (uint32_t i = 0; i < op.spec.n_out; ++i) c.invocation().out[i] = &out[i];
  c.invocation().infer();
  return ask(c.invocation());
}

std::vector<std::string> engines_of_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs) {
  return about_call(op, operands, n, attrs, nullptr, serving_engines);
}

std::vector<std::string> decomposition_of_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs,
                                               Device* device) {
  std::vector<std::string> names;
  for (const Op* called : about_call(op, operands, n, attrs, device, decomposition_ops))
    names.push_back(called->spec.name);
  return names;
}

std::string missing_for_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs, Device* device) {
  return about_call(op, operands, n, attrs, device, [](const Invocation& inv) { return missing_kernel(inv); });
}

// The exception's type. The package's own are looked up only when raised: an ending interpreter cannot import.
static py::object type_of(ErrorKind kind) {
  PyObject* const types[] = {PyExc_TypeError,           PyExc_ValueError, PyExc_IndexError,  PyExc_MemoryError,
                             PyExc_NotImplementedError, nullptr,          PyExc_RuntimeError};
  if (kind == ErrorKind::device_lost) return lazy("_errors", "DeviceLostError");
  if (kind == ErrorKind::axis) return lazy("_errors", "AxisError");
  if (kind == ErrorKind::overflow) return py::reinterpret_borrow<py::object>(PyExc_OverflowError);
  if (kind == ErrorKind::no_file) return py::reinterpret_borrow<py::object>(PyExc_FileNotFoundError);
  if (kind == ErrorKind::no_permission) return py::reinterpret_borrow<py::object>(PyExc_PermissionError);
  if (kind == ErrorKind::is_folder) return py::reinterpret_borrow<py::object>(PyExc_IsADirectoryError);
  if (kind == ErrorKind::file) return py::reinterpret_borrow<py::object>(PyExc_OSError);
  if (kind == ErrorKind::buffer) return py::reinterpret_borrow<py::object>(PyExc_BufferError);
  return py::reinterpret_borrow<py::object>(types[int(kind)]);
}

static void raise(const Error& error) {
  try {
    const py::object type = type_of(error.kind), exception = type(str_of(error.what()));
    if (!error.cure.empty()) exception.attr("cure") = str_of(error.cure);
    PyErr_SetObject(type.ptr(), exception.ptr());
  } catch (py::error_already_set& e) {  // the interpreter ends, and its modules are gone
    e.restore();
  }
}

void set_python_error() {
  try {
    throw;
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const Error& e) {
    raise(e);
    chain_cause(e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetObject(PyExc_RuntimeError, str_of(e.what()).ptr());
  }
}

// ---- scalars ----------------------------------------------------------------------------------------------------
namespace {
bool is_numpy_number(PyObject* o) {
  const std::string_view name = Py_TYPE(o)->tp_name;
  if (!name.starts_with("numpy.") || !PyNumber_Check(o)) return false;
  return name != "numpy.ndarray" && name != "numpy.datetime64" && name != "numpy.timedelta64";
}
bool is_bool(PyObject* o) { return PyBool_Check(o) || std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0; }
}  // namespace

bool is_number(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_number(o);
}

bool is_complex_number(PyObject* o) {
  const std::string_view name = Py_TYPE(o)->tp_name;
  return PyComplex_Check(o) || name.starts_with("numpy.complex") || name == "numpy.clongdouble";
}

DType own_dtype(PyObject* o) {
  if (PyFloat_Check(o)) return kDefaultFloat;
  return is_bool(o)             ? DType::b8
         : PyIndex_Check(o)     ? kDefaultInt
         : is_complex_number(o) ? DType::c64
                                : kDefaultFloat;
}

static Integer integer_from(PyObject* o) {
  const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(o));
  if (!number) throw py::error_already_set();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  Integer made{.bits = uint64_t(value), .negative = overflow ? overflow < 0 : value < 0, .wider = overflow != 0};
  if (overflow > 0) {
    made.bits = PyLong_AsUnsignedLongLong(number.ptr());
    made.wider = PyErr_Occurred();
    PyErr_Clear();
  }
  if (made.wider) made.text = utf8(py::str(number).ptr());
  return made;
}

Tensor scalar_from(PyObject* o, DType dtype, const char* function) {
  if (is_integer(dtype)) return number_of(integer_from(o), dtype, function);
  if (dtype == DType::b8) {
    const int truth = PyObject_IsTrue(o);
    if (truth < 0) throw py::error_already_set();
    return bool_number_of(truth);
  }
  if (is_complex(dtype)) {
    const Py_complex value = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw py::error_already_set();
    return complex_number_of(value.real, value.imag, dtype);
  }
  const double value = PyFloat_AsDouble(o);
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  return number_of(value, dtype, function, is_float8(dtype) ? shown(o) : std::string());
}
}  // namespace dovetail::bindings
