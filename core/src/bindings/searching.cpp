// nonzero and unique.
#include "dispatch/searching.hpp"

#include "bindings/interchange.hpp"

namespace dovetail::bindings {
void make_searching(py::module_& m) {
  m.def("nonzero", [](const Tensor& x) {
    const Tensor held = x;  // a wait may let other threads run
    std::vector<Tensor> found = dovetail::nonzero(held);
    py::tuple result(found.size());
    for (size_t i = 0; i < found.size(); ++i) result[i] = wrap(std::move(found[i]));
    return result;
  });
  m.def(
      "unique",
      [](const Tensor& x, bool values_only) -> py::object {
        const Tensor held = x;
        Unique u = dovetail::unique(held, values_only);
        if (values_only) return wrap(std::move(u.values));
        return py::make_tuple(wrap(std::move(u.values)), wrap(std::move(u.indices)), wrap(std::move(u.inverse)),
                              wrap(std::move(u.counts)));
      },
      py::arg("x"), py::arg("values_only") = false);
}
}  // namespace dovetail::bindings
