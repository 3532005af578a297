#include "groups/opencl.hpp"

#include <CL/cl.h>
#include <dlfcn.h>

#include <functional>

#include "gpu/lru_cache.hpp"

namespace gpu::opencl {
namespace {
// Of the loader of OpenCL's drivers, which is in the process where SYCL has found one of them.
struct Loader {
#define GPU_OPENCL_FUNCTIONS(X) \
  X(clBuildProgram)             \
  X(clCreateKernel)             \
  X(clCreateProgramWithSource)  \
  X(clGetProgramBuildInfo) X(clReleaseContext) X(clReleaseDevice) X(clReleaseKernel) X(clReleaseProgram)
#define GPU_DECLARE(name) decltype(&::name) name = nullptr;
  GPU_OPENCL_FUNCTIONS(GPU_DECLARE)
#undef GPU_DECLARE
  bool complete = true;

  Loader() {
    void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD);
#define GPU_FIND(name)                                                                \
  name = library ? reinterpret_cast<decltype(name)>(dlsym(library, #name)) : nullptr; \
  complete = complete && name;
    GPU_OPENCL_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
  }
};
const Loader& cl() {
  static const Loader& found = *new Loader;
  return found;
}

void check(cl_int result, const char* call) {
  if (result != CL_SUCCESS) throw std::runtime_error(std::string(call) + " failed: " + std::to_string(result));
}

// A reference to an object of OpenCL's.
template <class Handle, auto release>
class Owned {
 public:
  explicit Owned(Handle handle) : handle_(handle) {}
  ~Owned() {
    if (handle_) (cl().*release)(handle_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator Handle() const { return handle_; }

 private:
  const Handle handle_;
};

std::string log_of(cl_program program, cl_device_id device) {
  size_t size = 0;
  check(cl().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size),
        "clGetProgramBuildInfo");
  std::string text(size, '\0');
  check(cl().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr),
        "clGetProgramBuildInfo");
  return text.c_str();  // without the 0 that it counts
}

sycl::kernel compile(const std::string& text, const char* name, const sycl::context& context,
                     const sycl::device& device) {
  constexpr auto backend = sycl::backend::opencl;
  const Owned<cl_context, &Loader::clReleaseContext> own_context(sycl::get_native<backend>(context));
  const Owned<cl_device_id, &Loader::clReleaseDevice> own_device(sycl::get_native<backend>(device));
  const cl_device_id to = own_device;
  const char* texts[] = {functions(), text.c_str()};
  cl_int result = CL_SUCCESS;
  const Owned<cl_program, &Loader::clReleaseProgram> program(
      cl().clCreateProgramWithSource(own_context, 2, texts, nullptr, &result));
  check(result, "clCreateProgramWithSource");
  // As the kernels of single ops are compiled (src/modules.cpp).
  result = cl().clBuildProgram(program, 1, &to, "-cl-std=CLC++2021 -cl-fp32-correctly-rounded-divide-sqrt", nullptr,
                               nullptr);
  if (result == CL_BUILD_PROGRAM_FAILURE)
    throw Refused("OpenCL's compiler refuses a group's text: " + log_of(program, to));
  check(result, "clBuildProgram");
  const Owned<cl_kernel, &Loader::clReleaseKernel> kernel(cl().clCreateKernel(program, name, &result));
  check(result, "clCreateKernel");
  return sycl::make_kernel<backend>(kernel, context);
}
}  // namespace

const char* missing(const sycl::device& device) {
  if (device.get_backend() != sycl::backend::opencl)
    return "groups need a compiler in the driver, which OpenCL has and Level Zero has not";
  return cl().complete ? nullptr : "groups need OpenCL's library, libOpenCL.so.1, which was not found";
}

std::shared_ptr<const sycl::kernel> find_kernel(const std::string& text, const char* name,
                                                const sycl::context& context, const sycl::device& device) {
  using Kernel = std::shared_ptr<const sycl::kernel>;
  // Compiled functions hold theirs themselves; this is for the next function with the same text. A kernel is a few
  // megabytes.
  static auto& cache = *new LruCache<std::string, Kernel, 128, std::hash<std::string>, std::equal_to<>>;
  const size_t which = std::hash<sycl::device>()(device);
  return cache.get(std::to_string(which) + " " + text,
                   [&] { return std::make_shared<const sycl::kernel>(compile(text, name, context, device)); });
}
}  // namespace gpu::opencl
