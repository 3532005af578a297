// Libraries and their kernels.
#include <atomic>
#include <bitset>
#include <cstring>
#include <memory>
#include <vector>

#include "device/multiprocessor.hpp"
#include "device/registry.hpp"
#include "driver/code.hpp"
#include "driver/devices.hpp"
#include "driver/streams.hpp"

// A CUkernel and its CUfunction are one object, by different names.
struct CUkern_st {
  const std::shared_ptr<const emulator::Kernel> code;
  const emulator::Kernel& kernel = *code;
  std::vector<std::atomic<int>> most_dynamic_shared;  // on each device

  explicit CUkern_st(std::shared_ptr<const emulator::Kernel> c)
      : code(std::move(c)), most_dynamic_shared(size_t(emulator::count_devices())) {
    for (auto& bytes : most_dynamic_shared) bytes = emulator::shared_unless_raised;
  }
};
struct CUlib_st {
  const std::shared_ptr<const emulator::Kernel> own;  // of code that the host runs
  std::vector<CUkernel> kernels;
  std::mutex mutex;
};

using namespace emulator;

namespace {
std::shared_ptr<CUkern_st> find(CUkernel kernel) { return Handles<CUkern_st>::instance().find(kernel); }
CUkernel kernel_of(CUfunction function) { return reinterpret_cast<CUkernel>(function); }

std::shared_ptr<const Kernel> find_in(const CUlib_st& library, std::string_view name) {
  if (library.own) return library.own->name == name ? library.own : nullptr;
  return {std::shared_ptr<void>(), find_kernel(name)};  // without an owner: it was compiled into this library
}

void check_limits(const CUkern_st& kernel, const Extent& grid, const Extent& block, unsigned shared, int device) {
  const std::string name = kernel.kernel.name;
  if (!grid.count() || !block.count()) refuse(CUDA_ERROR_INVALID_VALUE, name + ": a launch of no threads");
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    refuse(CUDA_ERROR_INVALID_VALUE, name + ": the grid is larger than grids may be");
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > 1024)
    refuse(CUDA_ERROR_INVALID_VALUE, name + ": the block is larger than blocks may be");
  if (block.count() > kernel.kernel.most_threads)
    refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, name + ": " + std::to_string(block.count()) +
                                                   " threads, compiled for " +
                                                   std::to_string(kernel.kernel.most_threads));
  const int most = kernel.most_dynamic_shared[size_t(device)];
  if (shared > unsigned(most))
    refuse(CUDA_ERROR_INVALID_VALUE, name + ": " + std::to_string(shared) +
                                         " bytes of dynamic shared memory, allowed are " + std::to_string(most));
}

std::vector<std::byte> pack(const Kernel& kernel, void** arguments) {
  std::vector<std::byte> bytes(kernel.argument_bytes());
  if (!arguments && !bytes.empty()) refuse(CUDA_ERROR_INVALID_VALUE, "there are no arguments");
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter& p = kernel.parameters[i];
    std::memcpy(&bytes[p.offset], arguments[i], p.size);
  }
  return bytes;
}

void raise(CUkern_st& kernel, CUfunction_attribute attribute, int value, int device) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    refuse(CUDA_ERROR_INVALID_VALUE, "an attribute of kernels that is not emulated");
  if (value < 0 || value > model().most_shared())
    refuse(CUDA_ERROR_INVALID_VALUE, std::string(kernel.kernel.name) + ": " + std::to_string(value) +
                                         " bytes of shared memory, the device has " +
                                         std::to_string(model().most_shared()));
  kernel.most_dynamic_shared[size_t(device)] = value;
}
}  // namespace

CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
  return answer("cuLibraryLoadData", Needs::driver, [&] {
    if (!code) refuse(CUDA_ERROR_INVALID_VALUE, "the code is null");
    place_for(out) = Handles<CUlib_st>::instance().add(std::make_shared<CUlib_st>(open_code(code)));
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  return answer("cuLibraryUnload", Needs::driver, [&] {
    const auto library = Handles<CUlib_st>::instance().remove(handle);
    const std::lock_guard guard(library->mutex);
    for (CUkernel kernel : library->kernels) Handles<CUkern_st>::instance().remove(kernel);
  });
}

CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  return answer("cuLibraryGetKernel", Needs::driver, [&] {
    const auto library = Handles<CUlib_st>::instance().find(handle);
    const auto found = find_in(*library, &place_for(name));
    if (!found) refuse(CUDA_ERROR_NOT_FOUND, std::string("there is no kernel ") + name);
    const std::lock_guard guard(library->mutex);
    for (CUkernel there : library->kernels)
      if (there->code == found) {
        place_for(out) = there;
        return;
      }
    place_for(out) = Handles<CUkern_st>::instance().add(std::make_shared<CUkern_st>(found));
    library->kernels.push_back(*out);
  });
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t i, size_t* offset, size_t* size) {
  return answer("cuKernelGetParamInfo", Needs::driver, [&] {
    const auto kernel = find(handle);
    const auto parameters = kernel->kernel.parameters;
    if (i >= parameters.size()) refuse(CUDA_ERROR_INVALID_VALUE, "it has no such parameter");
    place_for(offset) = parameters[i].offset;
    if (size) *size = parameters[i].size;
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  return answer("cuKernelSetAttribute", Needs::driver, [&] {
    check_device(device);
    raise(*find(handle), attribute, value, device);
  });
}

CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  return answer("cuKernelGetFunction", Needs::context, [&] {
    find(handle);
    place_for(out) = reinterpret_cast<CUfunction>(handle);
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return answer("cuFuncSetAttribute", Needs::context,
                [&] { raise(*find(kernel_of(function)), attribute, value, require_life()->device); });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return answer("cuFuncGetAttribute", Needs::context, [&] {
    const auto kernel = find(kernel_of(function));
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: place_for(value) = int(kernel->kernel.most_threads); break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        place_for(value) = kernel->most_dynamic_shared[size_t(require_life()->device)];
        break;
      default: refuse(CUDA_ERROR_INVALID_VALUE, "an attribute of kernels that is not emulated");
    }
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream handle, void** arguments,
                        void** extra) {
  return answer("cuLaunchKernel", Needs::context, [&] {
    const auto kernel = find(kernel_of(function));
    const Stream stream = find_stream(handle);
    const Extent grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
    check_limits(*kernel, grid, block, shared, stream->life->device);
    if (extra) refuse(CUDA_ERROR_NOT_SUPPORTED, "arguments in one buffer are not emulated");
    const std::lock_guard guard(streams_mutex());
    submit(*stream, [kernel, grid, block, shared, bytes = pack(kernel->kernel, arguments)] {
      const Kernel& k = kernel->kernel;
      const Launch launch{k.name, grid, block, shared, k.call, bytes.data(), Order::of_environment()};
      if (const auto wrong = Multiprocessor::of_this_thread().run(launch)) {
        const bool illegal = wrong->kind == KernelError::illegal_address;
        throw Fault{illegal ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_FAILED, wrong->message};
      }
    });
  });
}
