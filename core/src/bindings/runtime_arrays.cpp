// Arrays as dvr_tensors of runtime.h, by address: for bridges in C whose users are in Python. Memory of the pool
// goes in and out without a copy, and keeps its order of streams and its packed forms.
#include "api/api.hpp"
#include "bindings/interchange.hpp"

namespace dovetail::bindings {
namespace {
py::object array_at(uintptr_t address) {
  return wrap(api::to_tensor(reinterpret_cast<const dvr_tensor*>(address), "[array_at] the tensor"));
}

uintptr_t owned_at(const Tensor& x) {
  static thread_local dvr_tensor out;
  const bool alone = x.is_alone() && !x.storage->immutable;
  const Tensor held = x;
  api::put(alone ? Tensor(held) : compact(held), out);
  return reinterpret_cast<uintptr_t>(&out);
}
}  // namespace

void make_runtime_arrays(py::module_& m) {
  m.def("array_at", array_at, "The array that shares the buffer of the dvr_tensor at this address.");
  m.def("owned_at", owned_at,
        "The address of a dvr_tensor of this value, good until the thread's next call. The caller may write to its "
        "buffer once x is gone, and releases it: it is x's own, or a copy where others hold that.");
}
}  // namespace dovetail::bindings
