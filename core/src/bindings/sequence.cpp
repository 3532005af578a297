// Arrays from Python numbers and nested lists.
#include <algorithm>

#include "bindings/interchange.hpp"
#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail::bindings {
namespace {
bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }
bool is_plain_number(PyObject* o) {  // not a NumPy scalar, which has a dtype of its own
  return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o) ||
         ((PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o)) &&
          std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0);
}
DKind kind_of(PyObject* o) {
  return PyBool_Check(o)    ? DKind::boolean
         : PyLong_Check(o)  ? DKind::signed_int
         : PyFloat_Check(o) ? DKind::floating
                            : DKind::complex;
}

// The shape and kind of a nested list. It is `foreign` if it holds anything but numbers and lists.
struct Nested {
  std::vector<int64_t> shape;
  DKind kind = DKind::boolean;  // the widest
  bool any = false, foreign = false;

  explicit Nested(PyObject* o) {
    for (PyObject* first = o; is_list(first); first = PySequence_Fast_GET_ITEM(first, 0)) {
      if (shape.size() == DVT_MAX_NDIM)
        throw Error(ErrorKind::value, "[asarray] lists nested more than " + std::to_string(DVT_MAX_NDIM) + " deep");
      shape.push_back(PySequence_Fast_GET_SIZE(first));
      if (shape.back() == 0) break;
    }
    measure(o, 0);
    if (!any) kind = DKind::floating;
  }

  void measure(PyObject* o, size_t depth) {
    if (!is_list(o)) {
      if (!is_plain_number(o)) {
        foreign = true;
      } else if (depth != shape.size()) {
        ragged("a number", depth);
      } else {
        kind = std::max(kind, kind_of(o)), any = true;
      }
      return;
    }
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (depth >= shape.size()) ragged("a list", depth);
    if (n != shape[depth]) ragged("a list of " + std::to_string(n), depth);
    for (Py_ssize_t i = 0; i < n && !foreign; ++i) measure(PySequence_Fast_GET_ITEM(o, i), depth + 1);
  }

  [[noreturn]] void ragged(const std::string& got, size_t depth) const {
    throw Error(ErrorKind::value,
                "[asarray] a ragged nested list: expected " +
                    (depth < shape.size() ? "a list of " + std::to_string(shape[depth]) : std::string("a number")) +
                    " at depth " + std::to_string(depth) + ", as the first, got " + got);
  }
};

struct Writer {
  DType dtype;
  char *to, *end;

  [[noreturn]] static void changed() {
    throw Error(ErrorKind::runtime, "[asarray] the list changed while it was read");
  }
  template <class T>
  void put(T value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  }
  void number(PyObject* o) {
    if (to == end || !is_plain_number(o)) changed();
    if (dtype == DType::f32 || dtype == DType::f64) {
      const double value = PyFloat_AsDouble(o);
      if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
      return dtype == DType::f32 ? put(float(value)) : put(value);
    }
    if (dtype == DType::i64) {
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (!overflow) return put(value);
    }
    const Tensor t = scalar_from(o, dtype, "asarray");
    std::memcpy(to, t.view.data, info(dtype).bytes());
    to += info(dtype).bytes();
  }
  void all(PyObject* o) {
    if (!is_list(o)) return number(o);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      // A number's own __float__ may remove it, or the list that holds it, from the enclosing lists.
      const auto item = py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(o, i));
      all(item.ptr());
    }
  }
};

// The lowest bits of each byte side by side.
std::vector<char> packed(const std::vector<char>& elements, uint32_t bits) {
  const uint32_t each = 8 / bits, mask = (1u << bits) - 1;
  std::vector<char> bytes((elements.size() + each - 1) / each);
  for (size_t i = 0; i < elements.size(); ++i)
    bytes[i / each] = char(bytes[i / each] | (uint32_t(elements[i]) & mask) << i % each * bits);
  return bytes;
}

const char* name_of(DKind kind) {
  static constexpr const char* names[] = {"bool", "integer", "integer", "floating-point", "complex"};
  return names[int(kind)];
}

DType dtype_for(DKind found, const py::object& wanted) {
  if (wanted.is_none()) {
    switch (found) {
      case DKind::boolean: return DType::b8;
      case DKind::signed_int: return kDefaultInt;
      case DKind::complex: return DType::c64;
      default: return kDefaultFloat;
    }
  }
  const DType dtype = to_dtype(wanted.ptr(), "asarray");
  if (found >= DKind::floating && found > info(dtype).kind && dtype != DType::b8)
    throw Error(ErrorKind::type, std::string("[asarray] cannot store ") + name_of(found) + " numbers as " +
                                     info(dtype).name + ": make the array first, then use .astype()");
  return dtype;
}

// Returns None where an element is not a plain number.
py::object from_numbers(const py::object& o, const py::object& dtype, const py::object& device) {
  const Nested nested(o.ptr());
  if (nested.foreign) return py::none();
  const DType t = dtype_for(nested.any || dtype.is_none() ? nested.kind : DKind::boolean, dtype);
  Tensor sized;
  sized.set_type(t, nullptr);
  sized.set_shape(nested.shape);
  std::vector<char> bytes(sized.numel * info(t).bytes());
  Writer writer{t, bytes.data(), bytes.data() + bytes.size()};
  writer.all(o.ptr());
  if (writer.to != writer.end) Writer::changed();
  if (is_packed(t)) bytes = packed(bytes, info(t).bits());
  return wrap(upload(bytes.data(), t, nested.shape, to_device(device.ptr())));
}
}  // namespace

void make_sequences(py::module_& m) {
  m.def("from_numbers", from_numbers,
        "An array of a Python number or of nested lists and tuples of them: (object, dtype or None, device). None "
        "where "
        "something else is among them.");
}
}  // namespace dovetail::bindings
