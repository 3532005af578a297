// The state of a generator of random numbers; dovetail.random has the rest.
#include "bindings/array.hpp"
#include "dispatch/generator.hpp"

namespace dovetail::bindings {
void make_random(py::module_& m) {
  py::class_<Generator>(m, "Generator")
      .def_property(
          "state", [](Generator& g) { return g.state(); },
          [](Generator& g, std::pair<uint64_t, uint64_t> state) { g.set(state.first, state.second); })
      .def(
          "draw", [](Generator& g, uint64_t words) { return g.draw(words); },
          "(seed, offset) of a draw of so many 32-bit words; the next draw begins behind it.");
  make_with_new(m.attr("Generator"),
                py::cpp_function([] { return new Generator(0); }, py::return_value_policy::take_ownership));
  m.def("default_generator", [] { return &default_generator(); }, py::return_value_policy::reference);
}
}  // namespace dovetail::bindings
