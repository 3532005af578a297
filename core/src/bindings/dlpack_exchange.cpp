// DLPack's C exchange API, the capsule Array.__dlpack_c_exchange_api__: how libraries in C take and give arrays
// without Python calls. https://dmlc.github.io/dlpack/latest/c_api.html
#include "bindings/interchange.hpp"
#include "dispatch/dlpack.hpp"

namespace dovetail::bindings {
namespace {
using dlpack::ManagedVersioned;
using SetError = void (*)(void* context, const char* kind, const char* message);

struct ExchangeApi {  // DLPackExchangeAPI of dlpack.h
  dlpack::Version version;
  ExchangeApi* previous;  // of another major version
  int (*allocate)(DLTensor* like, ManagedVersioned** out, void* context, SetError set_error);
  int (*from_object)(void* array, ManagedVersioned** out);
  int (*to_object)(ManagedVersioned*, void** out);
  int (*borrow)(void* array, DLTensor* out);
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out);
};
static_assert(sizeof(ExchangeApi) == 16 + 5 * sizeof(void*));

// Runs work that may throw; the exception becomes Python's.
template <class F>
int status_of(F&& work) {
  try {
    work();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

bool is_host(int32_t device_type) {
  return device_type == kHostMemory || device_type == dlpack::kCudaHost || device_type == dlpack::kRocmHost;
}

// nullptr: plain memory of the host, which no device here works in.
Device* home_of(DLDevice name) {
  Device* const home = dlpack::home_of(name, to_device(Py_None));
  if (!home && !is_host(name.device_type))
    throw Error(ErrorKind::buffer, "[dlpack] device (" + std::to_string(name.device_type) + ", " +
                                       std::to_string(name.device_id) + "): no installed backend has it");
  return home;
}

// Called with or without the GIL.
int allocate(DLTensor* like, ManagedVersioned** out, void* context, SetError set_error) {
  const py::gil_scoped_acquire gil;
  const int status = status_of([&] {
    Device* const home = home_of(like->device);
    if (!home) throw Error(ErrorKind::buffer, "[dlpack] no installed backend works in the host's memory");
    auto e = dlpack::export_new(dlpack::dtype_named(like->dtype), {like->shape, size_t(like->ndim)}, *home);
    *out = &e.release()->versioned;
  });
  if (status) {
    const py::error_already_set raised;
    const std::string kind = py::str(raised.type().attr("__name__")), message = py::str(raised.value());
    set_error(context, kind.c_str(), message.c_str());
  }
  return status;
}

int from_object(void* object, ManagedVersioned** out) {
  return status_of([&] {
    auto* const array = static_cast<PyObject*>(object);
    if (!is_array(array)) throw Error(ErrorKind::type, "[dlpack] expected an array, got " + shown(array));
    expect_elements(array);
    const Tensor held = tensor_of(array);
    auto e = dlpack::export_array(held, {.order = dlpack::Order::on_stream, .shared_flags = dlpack::kReadOnly});
    *out = &e.release()->versioned;
  });
}

// Owns the tensor where it succeeds; else its caller deletes it.
int to_object(ManagedVersioned* managed, void** out) {
  return status_of([&] {
    dlpack::Foreign from(managed);
    Device* const home = home_of(from.tensor->device);
    Device& to = home ? *home : to_device(Py_None);
    *out = wrap(dlpack::import_array(from, home, to, std::nullopt)).release().ptr();
    if (!from.taken && managed->deleter) managed->deleter(managed);  // it was copied
  });
}

int current_work_stream(int32_t device_type, int32_t device_id, void** out) {
  return status_of([&] {
    Device* const home = home_of(dl_device(device_type, device_id));
    *out = home ? dlpack::native_stream(*home).value_or(nullptr) : nullptr;
  });
}

// `borrow` is optional and left out: its DLTensor cannot say that nobody may write to it.
ExchangeApi api{
    {dlpack::kMajor, dlpack::kMinor}, nullptr, allocate, from_object, to_object, nullptr, current_work_stream};
}  // namespace

void make_dlpack_exchange(py::module_&) {
  PyObject* const capsule = PyCapsule_New(&api, "dlpack_exchange_api", nullptr);
  if (!capsule) throw py::error_already_set();
  py::setattr(py::handle(reinterpret_cast<PyObject*>(array_type)), "__dlpack_c_exchange_api__",
              py::reinterpret_steal<py::object>(capsule));
}
}  // namespace dovetail::bindings
