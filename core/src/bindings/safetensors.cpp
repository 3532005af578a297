// Safetensors files, for dovetail.load_safetensors and save_safetensors.
#include <pybind11/stl/filesystem.h>

#include "bindings/interchange.hpp"
#include "dispatch/weights.hpp"

namespace dovetail::bindings {
namespace {
using std::filesystem::path;

// Errors name the file.
template <class F>
auto about(const char* function, const path& file, F&& work) {
  try {
    return work();
  } catch (const Error& e) {
    throw e.within(std::string("[") + function + "] " + file.filename().string() + ": ");
  }
}

class WeightsFile {
 public:
  explicit WeightsFile(path p)
      : path_(std::move(p)), file_(about("load_safetensors", path_, [&] {
          const GilRelease others_run;
          return safetensors::File(path_.string());
        })) {}

  py::list names() const {
    return about("load_safetensors", path_, [&] {
      py::list all;
      for (const safetensors::Entry& e : file_.entries()) {
        PyObject* const name = PyUnicode_DecodeUTF8(e.name.data(), Py_ssize_t(e.name.size()), nullptr);
        if (!name) {
          PyErr_Clear();
          throw Error(ErrorKind::value, "tensor " + e.name + ": expected a name in UTF-8");
        }
        all.append(py::reinterpret_steal<py::object>(name));
      }
      return all;
    });
  }

  Tensor load(const std::string& name, const py::object& device) const {
    Device& to = to_device(device.ptr());
    return about("load_safetensors", path_, [&] {
      const safetensors::Entry* const entry = file_.find(name);
      if (!entry) throw Error(ErrorKind::value, "it has no tensor " + name);
      const GilRelease others_run;
      return load_tensor(file_, *entry, to);
    });
  }

 private:
  const path path_;
  const safetensors::File file_;
};

void save(const path& to, const py::dict& arrays, const py::dict& metadata) {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& [name, x] : arrays) {
    if (!is_array(x.ptr()))
      throw Error(ErrorKind::type, "[save_safetensors] expected an array, got " + shown(x.ptr()));
    expect_elements(x.ptr());
    all.emplace_back(name.cast<std::string>(), tensor_of(x.ptr()));
  }
  Json texts = Json::map();
  for (const auto& [key, text] : metadata)
    texts.members.emplace_back(key.cast<std::string>(), text.cast<std::string>());
  about("save_safetensors", to, [&] {
    const GilRelease others_run;
    save_tensors(to.string(), all, std::move(texts));
  });
}
}  // namespace

void make_safetensors(py::module_& m) {
  const py::class_<WeightsFile> type =
      py::class_<WeightsFile>(m, "WeightsFile", "A mapped safetensors file.")
          .def_property_readonly("names", [](const WeightsFile& file) { return file.names(); })
          .def("load", &WeightsFile::load, py::arg("name"), py::arg("device"), "One tensor as an array.");
  make_with_new(type, py::cpp_function([](path p) { return std::make_unique<WeightsFile>(std::move(p)); }));
  m.def("save_safetensors", save, py::arg("path"), py::arg("arrays"), py::arg("metadata"));
}
}  // namespace dovetail::bindings
