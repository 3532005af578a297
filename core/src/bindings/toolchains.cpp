// Toolchains for Python: which there are, and what they made.
#include <pybind11/stl.h>

#include "bindings/array.hpp"
#include "device/toolchain.hpp"

namespace dovetail::bindings {
void make_toolchains(py::module_& m) {
  m.def(
      "set_toolchain",
      [](const std::string& name, std::vector<std::string> command, std::string fingerprint, std::string problem) {
        set_toolchain(name, {std::move(command), std::move(fingerprint), std::move(problem)});
      },
      "The command that starts a toolchain's worker, and what its code depends on beside the request; or why there "
      "is none.");
  m.def(
      "toolchain_table", [] { return reinterpret_cast<uintptr_t>(&toolchain_service()); },
      "The address of the dvt_toolchain that plugins get.");
  m.def(
      "toolchains",
      [] {
        py::list all;
        for (const ToolReport& tool : toolchain_reports()) {
          py::list made;
          for (const ToolReport::Made& one : tool.made)
            made.append(
                py::dict(py::arg("key") = one.key, py::arg("bytes") = one.bytes, py::arg("cpu_ms") = one.cpu_ms));
          all.append(py::dict(py::arg("name") = tool.name, py::arg("made") = made, py::arg("shared") = tool.shared,
                              py::arg("kept") = tool.kept, py::arg("failures") = tool.failures));
        }
        return py::make_tuple(all, toolchain_cache_problem());
      },
      "What toolchains were asked for, and why nothing is kept on disk, or \"\".");
}
}  // namespace dovetail::bindings
