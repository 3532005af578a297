// Another project on the public index is called "dovetail" and brings a package of the same name. Where both are
// installed into one folder, each has overwritten files of the other, and uninstalling one takes files of both.
#include <filesystem>

#include "bindings/array.hpp"
#include "platform/platform.hpp"

namespace dovetail::bindings {
namespace {
const char* cure =
    "python -m pip uninstall --yes dovetail; python -m pip install --force-reinstall --no-deps dovetail-runtime";

// "dovetail 1.0b2" where that project is installed in the folder, else "".
std::string other_project(const std::filesystem::path& packages) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(packages, ignored)) {
    const std::string name = entry.path().filename().string();
    const std::string_view opening = "dovetail-";
    if (!name.starts_with(opening)) continue;
    for (const std::string_view ending : {".dist-info", ".egg-info"})
      if (name.ends_with(ending))
        return "dovetail " + name.substr(opening.size(), name.size() - opening.size() - ending.size());
  }
  return {};
}
}  // namespace

void check_installation() {
  const std::filesystem::path package = platform::own_folder();
  const std::string other = other_project(package.parent_path());
  if (!other.empty())
    throw py::import_error("another project, " + other + ", is installed in " + package.parent_path().string() +
                           ", where it and dovetail-runtime overwrite each other's files: " + cure);
  // dovetail/__init__.py sets it before it imports this module.
  const py::object parent = py::module_::import("sys").attr("modules").attr("get")("dovetail");
  if (!py::hasattr(parent, "__distribution__"))
    throw py::import_error("dovetail/__init__.py in " + package.string() +
                           " is missing or another project's: expected that of dovetail-runtime; " + cure);
}
}  // namespace dovetail::bindings
