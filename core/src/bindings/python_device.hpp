// Backends whose functions are written in Python (dovetail.prototype): an ordinary dvt_backend table in front,
// calls into Python behind it. python_device.cpp has memory and the table, python_kernel.cpp the kernels.
//
// The GIL guards the data of these files. No code here waits for a lock while it holds the GIL.
#pragma once
#include <map>
#include <memory>

#include "bindings/array.hpp"

namespace dovetail::bindings {
// Memory of a device, as its alloc() returned it.
struct Buffer {
  PyObject* object;
  uint64_t size;
  bool exported;   // `view` is a view of the object's own memory
  void* reserved;  // addresses that identify the object where it has no memory of the host
  Py_buffer view;
};

struct PythonDevice {  // the target of a dvt_device* of these backends
  const dvt_host* host = nullptr;
  PyObject* self = nullptr;
  PyObject *alloc = nullptr, *free = nullptr, *copy = nullptr,
           *close = nullptr;  // its methods; nullptr: the default
  std::string what;           // "Acme", for messages
  bool mapped = false;        // its memory is the host's
  uint64_t used = 0;
  dvt_props props{};
  std::map<uintptr_t, Buffer> buffers;  // by their first address

  static PythonDevice& of(dvt_device* handle) { return *reinterpret_cast<PythonDevice*>(handle); }
};

// The scope of a call into Python: it holds the GIL, makes the runtime refuse calls, and saves the exception that
// is being handled. It converts to false where the interpreter is ending and no Python code can run.
class Inside {
 public:
  explicit Inside(const char* what);
  ~Inside();
  Inside(const Inside&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  const char* before_ = nullptr;
  bool entered_;
  PyGILState_STATE state_{};
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

// PyObject_Vectorcall within Inside; returns a new reference. If the interpreter ends meanwhile, the thread stops
// here for good: CPython would unwind its stack, and destructors would release objects without the GIL.
PyObject* call_python(PyObject* callable, PyObject* const* args, size_t n, PyObject* names = nullptr);

// Calls lazy(module, name)(objects...). For Python functions that threads call all the time: when the interpreter
// ends, the threads stop there, too.
template <class... Objects>
py::object call_lazy(const char* module, const char* name, const Objects&... objects) {
  const py::object function = lazy(module, name);
  PyObject* const args[] = {objects.ptr()...};
  PyObject* result = call_python(function.ptr(), args, sizeof...(objects));
  if (!result) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// Reports the Python exception that is set to the host, and keeps it as the cause of the exception that the host
// raises for the status.
dvt_status fail_with_exception(const dvt_host* host, const char* what);
dvt_status fail_at_the_end(const dvt_host* host, const char* what);
// Makes the kept exception the cause of the one that is set, if the message shows that they belong together.
void chain_cause(const char* message);

// Operands as dovetail.prototype.View objects, for the length of one call.
class Views {
 public:
  explicit Views(PythonDevice& device) : device_(device) {}
  ~Views();
  // Returns a new reference. The view shares memory of the host until take_back(), or with `copied` has a copy.
  // Throws py::error_already_set.
  py::object make(const DLTensor& t, bool writable, bool copied);
  // Ends the sharing of memory; false, with an exception set, where Python code still holds some of it.
  bool take_back();

 private:
  PythonDevice& device_;
  std::vector<PyObject*> lent_;
};

// Makes rows for one Python function from dovetail.prototype's description; they live as long as the process.
void add_rows(const py::dict& kernel, std::vector<const dvt_kernel*>& rows, const dvt_host* host);
// The dtypes of an op's operands and outputs where its values have this dtype. `given`: its dtype attribute has it
// too.
py::tuple row_dtypes(const std::string& op, const py::object& dtype, bool given);
}  // namespace dovetail::bindings
