// The Python Array and the declarations that the files of bindings/ share. The Array, its operators and the op
// functions use the CPython C API, because a call through pybind11 costs as much as all of NumPy's a + b.
// Everything else uses pybind11.
#pragma once
#include <pybind11/pybind11.h>
#include <structmember.h>

#include <optional>

#include "dispatch/invocation.hpp"

namespace dovetail::bindings {
namespace py = pybind11;

// A call of more work than this, of all its nodes, takes long enough to release the GIL: about 50 us on one core.
inline constexpr uint64_t kHeavy = 100'000;

// ---- Array ------------------------------------------------------------------------------------------------------
struct PyArray {
  PyObject_HEAD PyObject* weakrefs;
  uint64_t met;  // by Guards::match: which call came last to it
  Tensor tensor;
};
extern PyTypeObject* array_type;
inline bool is_array(PyObject* o) { return Py_IS_TYPE(o, array_type); }  // the type is final
inline PyArray& array_of(PyObject* o) { return *reinterpret_cast<PyArray*>(o); }
inline Tensor& tensor_of(PyObject* o) { return reinterpret_cast<PyArray*>(o)->tensor; }
PyObject* new_array();              // with an empty tensor
PyObject* new_array(Tensor value);  // NULL with MemoryError
void make_array_type(py::module_& m);
// An array whose memory was given to a compiled function: it has a shape and nothing else.
inline bool has_elements(PyObject* array) { return tensor_of(array).dtype != DType::none; }
void leave_without_elements(PyObject* array, std::string why);
[[noreturn]] void refuse_without_elements(PyObject* array);  // throws Error(runtime) with that `why`
inline void expect_elements(PyObject* array) {
  if (!has_elements(array)) [[unlikely]]
    refuse_without_elements(array);
}

// ---- calls ------------------------------------------------------------------------------------------------------
// Runs `op` on Python objects, one per operand; NULL stands for an operand that is not given. Returns a new
// reference: an Array, a tuple of Arrays where the op has several outputs, or `replaced` with its new value.
// Returns NULL without an exception where an operand is neither array nor scalar: the caller then tries the
// operand's __dovetail_op__.
PyObject* call(const Op& op, PyObject* const* operands, int n, Attrs& attrs, Device* device, PyObject* replaced);
// The engines that can serve such a call. Throws Error(type) where an operand is neither array nor scalar.
std::vector<std::string> engines_of_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs);
// The names of the ops that the decomposition of such a call calls.
std::vector<std::string> decomposition_of_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs,
                                               Device* device);
// Why such a call does not run on the device of its operands alone; empty where it does.
std::string missing_for_call(const Op& op, PyObject* const* operands, int n, Attrs& attrs, Device* device);
bool is_optional(const Op& op, int operand);  // may be None
// Sets a TypeError for an operand that is neither array nor number; returns NULL.
PyObject* refuse_operand(const Op& op, PyObject* o);
// Sets the Python exception that corresponds to the C++ exception being handled.
void set_python_error();
// A Python number as a weak scalar of `dtype`. Throws Error(type), or Error(overflow), which names `function`.
Tensor scalar_from(PyObject* number, DType dtype, const char* function);
bool is_number(PyObject* o);
bool is_complex_number(PyObject* o);  // of Python or NumPy
DType own_dtype(PyObject* number);    // of a number without arrays

// ---- op functions -----------------------------------------------------------------------------------------------
void make_op_type(py::module_& m);
py::object op_function(const Op& op);  // one per op, made at first use
const Op* op_of(PyObject* function);   // nullptr if it is not an op function

// ---- attributes -------------------------------------------------------------------------------------------------
// Converts one Python value to the attribute `i`. What an attribute points to lives as long as `value` or `attrs`.
void set_attr(const Op& op, Attrs& attrs, int i, const ParamSpec& param, PyObject* value);
py::object attr_value(const dvt_attr& a);  // the other way, for decompositions
py::object default_object(const AttrDefault& d);

// ---- dtypes and devices -----------------------------------------------------------------------------------------
PyObject* dtype_object(DType t);  // borrowed
// Converts a DType, its name, a NumPy dtype, bool, int, float or complex. Throws Error(type), with "[function]" in
// front.
DType to_dtype(PyObject* o, const char* function = nullptr);
void make_dtypes(py::module_& m);
Device& to_device(PyObject* o);      // Device, name, None: the default; finds backends at first need
PyObject* device_object(Device& d);  // borrowed
void make_devices(py::module_& m);
void make_streams(py::module_& m);
void make_memory(py::module_& m);

// ---- the GIL ----------------------------------------------------------------------------------------------------
bool holds_gil();                     // this thread
void take_gil(PyThreadState* state);  // never returns once the interpreter ends

class GilRelease {  // releases the GIL for a scope, if the work in it is long enough
 public:
  explicit GilRelease(bool pays = true) : state_(pays ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() {
    if (state_) take_gil(state_);
  }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// ---- text -------------------------------------------------------------------------------------------------------
// A str as UTF-8; lone surrogates, which UTF-8 cannot encode, become escapes.
std::string utf8(PyObject* text);
// A value as messages show it: its repr, shortened, or its type's name where repr() fails.
std::string shown(PyObject* o);
// Text of a plugin or the system as a str; bytes that are not UTF-8 become escapes.
py::str str_of(std::string_view text);

// ---- classes of pybind11 ----------------------------------------------------------------------------------------
// pybind11's __new__ returns an object without the C++ object that its methods read; only __init__ makes that. So a
// class here has no __init__: its __new__ calls `make`. Without `make`, only the runtime makes instances.
void make_with_new(py::handle type, py::object make = {});

// ---- the rest ---------------------------------------------------------------------------------------------------
void check_installation();  // throws ImportError where another project's files lie among ours
void make_registry(py::module_& m);
void make_toolchains(py::module_& m);
void make_engines(py::module_& m);
void make_tracing(py::module_& m);
void make_recorder(py::module_& m);  // of traces
void make_programs(py::module_& m);  // after make_tracing
void make_compiled_functions(py::module_& m);
void make_profile(py::module_& m);
void name_recorded_thread();  // which may have ended when the recording ends
void make_python_devices(py::module_& m);
void make_random(py::module_& m);
void make_interchange(py::module_& m);  // DLPack, buffers
PyObject* get_item(PyObject* self, PyObject* key);
int set_item(PyObject* self, PyObject* key, PyObject* value);
// A function of the Python package, imported at first use: lazy("_indexing", "getitem").
py::object lazy(const char* module, const char* name);
}  // namespace dovetail::bindings

template <>
struct pybind11::detail::type_caster<dovetail::Tensor> {
  static constexpr auto name = const_name("dovetail.Array");
  template <class>
  using cast_op_type = const dovetail::Tensor&;
  PyObject* source = nullptr;
  operator const dovetail::Tensor&() const { return dovetail::bindings::tensor_of(source); }
  bool load(handle h, bool) {
    if (!dovetail::bindings::is_array(source = h.ptr())) return false;
    dovetail::bindings::expect_elements(source);
    return true;
  }
  static handle cast(const dovetail::Tensor& t, return_value_policy, handle) {
    return dovetail::bindings::new_array(t);
  }
};
