// Included by every family of kernels. A family is one file of src/kernels, free of host code, that icpx
// -fsycl compiles as well. KERNEL(dims, name)(parameters) { ... } is a kernel over a range of so many dimensions;
// its name is unique among all families. Parameters are pointers to device memory, numbers and plain structs.
//
// A struct must be read by constant indices, in functions that are inlined: else it is copied for each work item,
// and what is read from the copy is not known to be the same for all of them. CPUs then gather what lies side by
// side.
//
// Local memory is `static work_group_static<T[N]>`: group_local_memory and get_work_group_scratch_memory crash when
// they are compiled at build time (intel-sycl-rt 2026.2).
#pragma once
#ifdef DOVETAIL_XPU_LIST_KERNELS  // the build lists the kernels with the preprocessor
#define KERNEL(dims, name) @kernel name
#else
#include <sycl/sycl.hpp>
#define KERNEL(dims, name) \
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<dims>)) void name
#endif

// GPU_FN begins a function of backends/gpu/kernels that kernels alone call, GPU_KERNEL a kernel there.
#define GPU_FN inline
#define GPU_KERNEL(dims, name) KERNEL(dims, name)

namespace gpu {
// body(i) for this work item's share of [0, n), whatever the range of the launch. In 64 bits: an index that may
// wrap keeps the CPU device's compiler from seeing contiguous reads (10 times slower).
template <class Body>
void for_each_item(size_t n, Body body) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  const size_t step = item.get_global_range(0);
  for (size_t i = item.get_global_id(0); i < n; i += step) body(i);
}
}  // namespace gpu
