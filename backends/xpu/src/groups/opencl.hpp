// The compiler in an OpenCL driver: from the text of a kernel, in C++ for OpenCL, to a kernel of SYCL's.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>

namespace gpu::opencl {
// The functions that texts call, which come before each. Embedded by the build (cmake/groups.cmake).
const char* functions();

// Why nothing can be compiled for the device, a static string; nullptr if texts can.
const char* missing(const sycl::device&);

// A text that does not compile, in the driver's words.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The kernel `name` of the text, compiled when it is first asked for, or when others have been used since: the
// newest are kept. Throws Refused, and sycl::exception.
std::shared_ptr<const sycl::kernel> find_kernel(const std::string& text, const char* name, const sycl::context&,
                                                const sycl::device&);
}  // namespace gpu::opencl
