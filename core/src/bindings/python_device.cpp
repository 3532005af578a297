#include "bindings/python_device.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

#include "platform/platform.hpp"
#include "text.hpp"

namespace dovetail::bindings {
namespace {
constexpr uint64_t kAlign = 64;
constexpr int32_t kHost = 1, kExtension = 12;  // kDLCPU, kDLExtDev

bool ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

[[noreturn]] void stay() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Calls f(), which may wait for the GIL. Where the interpreter ends meanwhile, the thread stops here for good.
template <class F>
auto or_stay(F f) {
#ifdef __GLIBCXX__
  try {
    return f();
  } catch (abi::__forced_unwind&) {
    stay();
  }
#else
  return f();
#endif
}

// The exception behind a status that this thread reported to the host. It is not released when the thread ends,
// because the interpreter may be gone by then.
struct Cause {
  PyObject* exception = nullptr;
  std::string message;
};
thread_local Cause cause;

// The status of an exception, and whether its text needs no class name in front.
std::pair<dvt_status, bool> status_of(PyObject* exception) {
  static PyObject* const lost = py::object(lazy("_errors", "DeviceLostError")).release().ptr();
  const auto is = [&](PyObject* type) { return PyErr_GivenExceptionMatches(exception, type) != 0; };
  if (is(PyExc_MemoryError)) return {DVT_OOM, true};
  if (is(PyExc_IndexError)) return {DVT_INDEX, true};
  if (is(PyExc_ValueError)) return {DVT_INVALID, true};
  if (is(lost)) return {DVT_DEVICE_LOST, true};
  return {DVT_INTERNAL, Py_TYPE(exception) == reinterpret_cast<PyTypeObject*>(PyExc_RuntimeError)};
}

py::object take_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return py::reinterpret_steal<py::object>(value);
}

std::string text_of(PyObject* exception) {
  const py::object text = py::reinterpret_steal<py::object>(PyObject_Str(exception));
  if (text) return std::string(py::str(text));
  PyErr_Clear();
  return {};
}
}  // namespace

// ---- into Python and back ---------------------------------------------------------------------------------------

Inside::Inside(const char* what) : entered_(!ending()) {
  if (!entered_) return;
  state_ = or_stay(PyGILState_Ensure);
  before_ = std::exchange(inside, what);
  PyErr_Fetch(&type_, &value_, &traceback_);
}

Inside::~Inside() {
  if (!entered_) return;
  PyErr_Restore(type_, value_, traceback_);
  inside = before_;
  PyGILState_Release(state_);
}

PyObject* call_python(PyObject* callable, PyObject* const* args, size_t n, PyObject* names) {
  return or_stay([&] { return PyObject_Vectorcall(callable, args, n, names); });
}

dvt_status fail_with_exception(const dvt_host* host, const char* what) {
  py::object exception = take_exception();
  const auto [status, says_it] = status_of(exception.ptr());
  std::string message = text_of(exception.ptr());
  if (!says_it || message.empty())
    message = std::string(what) + " raised " + Py_TYPE(exception.ptr())->tp_name +
              (message.empty() ? "" : ": " + message);
  std::replace(message.begin(), message.end(), '\0', ' ');  // it goes on as a C string
  Py_XDECREF(std::exchange(cause.exception, exception.release().ptr()));
  cause.message = message;
  return host->fail(host, status, 0, __FILE__, __LINE__, message.c_str());
}

dvt_status fail_at_the_end(const dvt_host* host, const char* what) {
  const std::string message = std::string("the interpreter is ending, and ") + what + " is Python";
  return host->fail(host, DVT_INTERNAL, 0, __FILE__, __LINE__, message.c_str());
}

void chain_cause(const char* message) {
  if (!cause.exception) return;
  const std::string end_of_text = cleaned(cause.message);  // as host->fail has it
  const std::string_view text(message), end(end_of_text);
  PyObject* exception = std::exchange(cause.exception, nullptr);
  if (text.size() < end.size() ||
      text.substr(text.size() - end.size()) != end) {  // another error than the one this exception caused
    Py_DECREF(exception);
  } else if (!PyErr_GivenExceptionMatches(exception, PyExc_Exception)) {  // Ctrl-C stays what it is
    PyErr_Clear();
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    Py_DECREF(exception);
  } else {
    py::object raised = take_exception();
    PyException_SetCause(raised.ptr(), exception);  // takes the reference
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  }
}

// ---- memory -----------------------------------------------------------------------------------------------------

namespace {
// Host memory, the default memory of Python devices.
class HostMemory {
 public:
  explicit HostMemory(uint64_t size)
      : size_(size),
        data_(size > kMost ? nullptr : std::aligned_alloc(kAlign, (size + kAlign - 1) / kAlign * kAlign)) {
    if (!data_) throw std::bad_alloc();
  }
  ~HostMemory() { std::free(data_); }
  HostMemory(const HostMemory&) = delete;
  py::buffer_info bytes() const {
    return {data_, 1, py::format_descriptor<uint8_t>::format(), 1, {py::ssize_t(size_)}, {1}};
  }

 private:
  static constexpr uint64_t kMost = uint64_t{1} << 62;  // the next multiple of 64 is still a number of bytes
  uint64_t size_;
  void* data_;
};

// Memory of the caller that Python code may use during one call. A View, an array or a memoryview of it holds a
// reference, so that the count shows whether some code still uses it after the call.
struct LentMemory {
  void* data;
  uint64_t size;
  bool writable;
  py::buffer_info bytes() const {
    const auto n = py::ssize_t(data ? size : 0);
    return {data, 1, py::format_descriptor<uint8_t>::format(), 1, {n}, {1}, !writable};
  }
};

void forget(Buffer& b) {
  if (b.exported) PyBuffer_Release(&b.view);
  if (b.reserved) platform::release_addresses(b.reserved, b.size);
  Py_CLEAR(b.object);
}

// The address of the object for the host. Returns NULL with an exception set where a device's alloc() must not
// return such an object.
void* place(const PythonDevice& d, Buffer& b) {
  if (d.mapped) {
    if (PyObject_GetBuffer(b.object, &b.view, PyBUF_WRITABLE) < 0) return nullptr;
    b.exported = true;
    if (uint64_t(b.view.len) >= b.size && !(reinterpret_cast<uintptr_t>(b.view.buf) % kAlign)) return b.view.buf;
    PyErr_Format(PyExc_RuntimeError,
                 "%s.alloc(%llu) returned %zd bytes at %p: expected as many as asked for, at a multiple of %d",
                 d.what.c_str(), static_cast<unsigned long long>(b.size), b.view.len, b.view.buf, int(kAlign));
    return nullptr;
  }
  if (b.object == Py_None) {
    PyErr_Format(PyExc_RuntimeError, "%s.alloc returned None: expected an address or an object", d.what.c_str());
    return nullptr;
  }
  if (PyLong_Check(b.object)) return PyLong_AsVoidPtr(b.object);
  b.reserved = platform::reserve_addresses(b.size);
  if (!b.reserved) PyErr_NoMemory();
  return b.reserved;
}

dvt_status alloc(dvt_device* handle, uint64_t size, uint32_t mem, dvt_stream*, void** out) {
  if (mem != DVT_MEM_DEVICE) return DVT_UNSUPPORTED;
  PythonDevice& d = PythonDevice::of(handle);
  const std::string what = d.what + ".alloc";
  const Inside python(what.c_str());
  if (!python) return fail_at_the_end(d.host, what.c_str());
  if (d.props.mem_total && d.used + size > d.props.mem_total) return DVT_OOM;
  d.used += size;  // before other threads may run
  Buffer b{nullptr, size, false, nullptr, {}};
  {
    const py::int_ bytes(size);
    PyObject* const args[] = {bytes.ptr()};
    b.object = call_python(d.alloc, args, 1);
  }
  void* at = b.object ? place(d, b) : nullptr;
  if (at && !d.buffers.emplace(reinterpret_cast<uintptr_t>(at), b).second) {
    PyErr_Format(PyExc_RuntimeError, "%s returned memory that is in use already", what.c_str());
    at = nullptr;
  }
  if (!at) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "%s returned the address 0", what.c_str());
    const dvt_status status = fail_with_exception(d.host, what.c_str());
    forget(b);
    d.used -= size;
    return status;
  }
  *out = at;
  return DVT_OK;
}

void dealloc(dvt_device* handle, void* at, uint32_t, dvt_stream*) {
  PythonDevice& d = PythonDevice::of(handle);
  const std::string what = d.what + ".free";
  const Inside python(what.c_str());
  if (!python) return;  // the process's end frees it
  const auto found = d.buffers.find(reinterpret_cast<uintptr_t>(at));
  if (found == d.buffers.end()) return;
  Buffer b = found->second;
  d.buffers.erase(found);
  d.used -= b.size;
  if (d.free) {
    PyObject* done = call_python(d.free, &b.object, 1);
    if (!done) PyErr_WriteUnraisable(d.free);
    Py_XDECREF(done);
  }
  forget(b);
}

uint64_t bytes_of(const DLTensor& t) {
  uint64_t n = uint64_t(t.dtype.bits / 8) * t.dtype.lanes;
  for (int i = 0; i < t.ndim; ++i) n *= uint64_t(t.shape[i]);
  return n;
}

dvt_status copy(dvt_device* handle, const DLTensor* dst, const DLTensor* src, dvt_stream*) {
  PythonDevice& d = PythonDevice::of(handle);
  if (!d.copy) {  // both are in memory of the host
    std::memmove(dst->data, src->data, bytes_of(*src));
    return DVT_OK;
  }
  const std::string what = d.what + ".copy_bytes";
  const Inside python(what.c_str());
  if (!python) return fail_at_the_end(d.host, what.c_str());
  Views views(d);
  try {
    {
      const py::object to = views.make(*dst, true, false), from = views.make(*src, false, false);
      PyObject* const args[] = {to.ptr(), from.ptr()};
      PyObject* done = call_python(d.copy, args, 2);
      if (!done) throw py::error_already_set();
      Py_DECREF(done);
    }
    if (!views.take_back()) throw py::error_already_set();
  } catch (py::error_already_set& e) {
    e.restore();
    return fail_with_exception(d.host, what.c_str());
  }
  return DVT_OK;
}

// ---- the table --------------------------------------------------------------------------------------------------

struct PythonBackend {
  std::string name, version, build;
  std::vector<const dvt_kernel*> rows;
  std::vector<std::unique_ptr<PythonDevice>> devices;  // nullptr: its __init__ failed
  std::vector<std::string> errors;
  const dvt_host* host = nullptr;
  dvt_backend table{};
};

// device_count and device_open get no handle of their backend, so every backend has functions of its own.
constexpr size_t kBackends = kMaxDevices;
PythonBackend* all_backends[kBackends];

template <size_t I>
dvt_status device_count(uint32_t* n) {
  *n = uint32_t(all_backends[I]->devices.size());
  return DVT_OK;
}
template <size_t I>
dvt_status device_open(uint32_t index, dvt_device** out) {
  const PythonBackend& b = *all_backends[I];
  if (index >= b.devices.size())
    return b.host->fail(b.host, DVT_INVALID, 0, __FILE__, __LINE__,
                        "[device_open] there is no device of that index");
  if (!b.devices[index]) return b.host->fail(b.host, DVT_INTERNAL, 0, __FILE__, __LINE__, b.errors[index].c_str());
  *out = reinterpret_cast<dvt_device*>(b.devices[index].get());
  return DVT_OK;
}
template <size_t... I>
void set_own_functions(dvt_backend& table, size_t index, std::index_sequence<I...>) {
  static constexpr decltype(dvt_backend::device_count) counts[] = {device_count<I>...};
  static constexpr decltype(dvt_backend::device_open) opens[] = {device_open<I>...};
  table.device_count = counts[index], table.device_open = opens[index];
}

dvt_status device_props(dvt_device* handle, dvt_props* props) {
  const uint32_t size = props->struct_size;
  std::memcpy(props, &PythonDevice::of(handle).props, std::min<size_t>(size, sizeof *props));
  props->struct_size = size;
  return DVT_OK;
}

void device_close(dvt_device* handle) {
  PythonDevice& d = PythonDevice::of(handle);
  if (!d.close) return;
  const std::string what = d.what + ".close";
  const Inside python(what.c_str());
  if (!python) return;
  PyObject* done = call_python(d.close, nullptr, 0);
  if (!done) PyErr_WriteUnraisable(d.close);
  Py_XDECREF(done);
}

PyObject* method(const py::dict& from, const char* name) {
  const py::object o = from[name];
  return o.is_none() ? nullptr : o.inc_ref().ptr();
}

std::unique_ptr<PythonDevice> make_device(const py::dict& from, const dvt_host* host, int index) {
  auto d = std::make_unique<PythonDevice>();
  d->host = host, d->what = from["what"].cast<std::string>(), d->mapped = from["mapped"].cast<bool>();
  d->self = py::object(from["self"]).inc_ref().ptr();
  d->alloc = method(from, "alloc"), d->free = method(from, "free");
  d->copy = method(from, "copy_bytes"), d->close = method(from, "close");
  dvt_props& p = d->props;
  const auto put = [&](char* to, size_t size, const char* key) {
    std::strncpy(to, from[key].cast<std::string>().c_str(), size - 1);
  };
  put(p.name, sizeof p.name, "product"), put(p.arch, sizeof p.arch, "arch");
  p.kind = from["kind"].cast<uint32_t>();
  p.caps = (d->mapped ? DVT_CAP_HOST_MAPPED : 0) | (from["fork_safe"].cast<bool>() ? DVT_CAP_FORK_SAFE : 0);
  p.dl_device_type = kExtension, p.dl_device_id = index;
  p.mem_total = from["memory"].cast<uint64_t>(), p.alloc_align = kAlign;
  p.peak_bytes_per_s = from["bytes_per_second"].cast<double>();
  return d;
}

// devices: a description of each, or the error of one that failed to open.
std::string attach(const std::string& registered, const std::string& name, const std::string& version,
                   const std::string& origin, const py::list& kernels, const py::list& devices) {
  const auto free = std::find(std::begin(all_backends), std::end(all_backends), nullptr);
  if (free == std::end(all_backends))
    throw Error(ErrorKind::runtime,
                "more than " + std::to_string(kBackends) + " Python devices in this process; use fewer at a time");
  auto* b = new PythonBackend;  // a table lives as long as the process
  b->name = name, b->version = version, b->build = "Python, " + origin;
  b->host = new_host(name, origin);
  for (const py::handle kernel : kernels) add_rows(py::reinterpret_borrow<py::dict>(kernel), b->rows, b->host);
  for (const py::handle d : devices) {
    const bool is_up = py::isinstance<py::dict>(d);
    b->errors.push_back(is_up ? "" : d.cast<std::string>());
    b->devices.push_back(is_up ? make_device(py::reinterpret_borrow<py::dict>(d), b->host, int(b->devices.size()))
                               : nullptr);
  }
  dvt_backend& t = b->table;
  t.struct_size = sizeof t;
  t.abi_major = DVT_ABI_MAJOR, t.abi_minor = DVT_ABI_MINOR, t.abi_draft = DVT_ABI_DRAFT;
  t.name = b->name.c_str(), t.version = b->version.c_str(), t.build_info = b->build.c_str();
  t.kernels = b->rows.data(), t.n_kernels = b->rows.size();
  t.device_close = device_close, t.device_props = device_props;
  t.alloc = alloc, t.dealloc = dealloc, t.copy = copy;
  *free = b;
  set_own_functions(t, size_t(free - all_backends), std::make_index_sequence<kBackends>());
  try {
    const GilRelease others_run;
    return attach_backend(registered, &t, origin, true).name;
  } catch (...) {
    *free = nullptr;
    throw;
  }
}

// Closes the devices that define close() while the interpreter still exists.
void close_all() {
  const std::vector<Backend*> open = backends();
  for (const Backend* b : open) {
    const auto is_ours = [&](const PythonBackend* p) { return p && &p->table == b->table; };
    if (std::none_of(std::begin(all_backends), std::end(all_backends), is_ours)) continue;
    if (b->devices.empty() || !PythonDevice::of(b->devices[0]->handle).close) continue;
    const GilRelease others_run;
    close_backend(*b);
  }
}
}  // namespace

// ---- views ------------------------------------------------------------------------------------------------------

Views::~Views() {
  for (PyObject* memory : lent_) Py_DECREF(memory);
}

py::object Views::make(const DLTensor& t, bool writable, bool copied) {
  static PyObject* const type = py::object(lazy("prototype", "View")).release().ptr();
  py::tuple shape(t.ndim), strides(t.ndim);
  uint64_t last = 0;  // the last element's distance from the first
  for (int i = 0; i < t.ndim; ++i) {
    shape[i] = py::int_(t.shape[i]), strides[i] = py::int_(t.strides[i]);
    last += uint64_t(t.shape[i] ? t.shape[i] - 1 : 0) * uint64_t(t.strides[i]);
  }
  const uint64_t n = bytes_of(t), bytes = n ? (last + 1) * (t.dtype.bits / 8) : 0;
  const bool on_host = t.device.device_type == kHost;
  char* at = static_cast<char*>(t.data) + t.byte_offset;
  py::object buffer = py::none();
  uint64_t offset = 0;
  if (n && t.data && on_host) {
    buffer = copied ? py::object(py::bytes(at, bytes)) : py::cast(LentMemory{at, bytes, writable});
    if (!copied) lent_.push_back(py::object(buffer).release().ptr());
  } else if (n && t.data) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    auto found = device_.buffers.upper_bound(address);
    if (found == device_.buffers.begin() || (--found)->first + found->second.size < address + bytes) {
      PyErr_Format(PyExc_RuntimeError, "an operand at %p is in no memory of %s", static_cast<void*>(at),
                   device_.what.c_str());
      throw py::error_already_set();
    }
    buffer = py::reinterpret_borrow<py::object>(found->second.object);
    offset = address - found->first;
  }
  const auto dtype = dtype_of(t.dtype);
  const py::object element = py::reinterpret_borrow<py::object>(dtype ? dtype_object(*dtype) : Py_None);
  const py::int_ where(reinterpret_cast<uintptr_t>(at)), from(offset);
  PyObject* const args[] = {shape.ptr(),
                            strides.ptr(),
                            element.ptr(),
                            buffer.ptr(),
                            from.ptr(),
                            where.ptr(),
                            writable ? Py_True : Py_False,
                            on_host || device_.mapped ? Py_True : Py_False,
                            on_host ? Py_True : Py_False};
  auto view = py::reinterpret_steal<py::object>(call_python(type, args, std::size(args)));
  if (!view) throw py::error_already_set();
  return view;
}

bool Views::take_back() {
  for (PyObject* memory : lent_) {
    py::handle(memory).cast<LentMemory&>().data = nullptr;
    if (Py_REFCNT(memory) == 1) continue;
    PyErr_SetString(PyExc_RuntimeError,
                    "memory of the host is still held after the call: expected a copy of what is to be kept");
    return false;
  }
  return true;
}

void make_python_devices(py::module_& m) {
  py::class_<HostMemory>(m, "HostMemory", py::buffer_protocol(),
                         "Bytes of the host's memory at a multiple of 64: HostMemory(size).")
      .def_buffer(&HostMemory::bytes);
  make_with_new(m.attr("HostMemory"),
                py::cpp_function([](uint64_t size) { return new HostMemory(size); }, py::name("HostMemory"),
                                 py::arg("size"), py::return_value_policy::take_ownership));
  py::class_<LentMemory>(m, "LentMemory", py::buffer_protocol()).def_buffer(&LentMemory::bytes);
  make_with_new(m.attr("LentMemory"));
  m.def("attach_python_backend", attach);
  m.def("row_dtypes", row_dtypes);
  py::module_::import("atexit").attr("register")(py::cpp_function(close_all));
}
}  // namespace dovetail::bindings
