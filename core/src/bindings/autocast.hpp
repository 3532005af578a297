// The casts of dovetail.autocast() in the calls that Python code makes.
#pragma once
#include "bindings/array.hpp"
#include "dispatch/autocast.hpp"

namespace dovetail::bindings {
extern bool autocast_used;  // whether this process has ever made a scope

// The scope of the current context, as long as it lives; nullptr: none.
std::shared_ptr<const Autocast> autocast_of_context();
// What the current context makes of calls on a device: the dtype of "lower", or none.
inline DType lower_dtype_here(const Device& device) {
  return autocast_used ? lower_dtype(autocast_of_context().get(), device) : DType::none;
}

void make_autocast(py::module_& m);
}  // namespace dovetail::bindings
