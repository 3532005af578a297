// Microseconds to enqueue one almost empty kernel, in calls that only enqueue: by the plugin's row of
// dvt.floor, and by SYCL alone with the same kernel and arguments. xpu_launch PLUGIN SPIRV, of kernel
// floor_f32: prints both. benchmarks/xpu.py builds and runs it.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

#include "dovetail/backend.hpp"
#include "kernels/common/layout.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;

dvt_status fail(const dvt_host*, dvt_status, uint64_t, const char*, int, const char* message) {
  throw std::runtime_error(message);
}
void log(const dvt_host*, int, const char*) {}

template <class Enqueue, class Wait>
double microseconds(Enqueue enqueue, Wait wait) {
  constexpr int batches = 50, batch = 100;
  std::vector<double> times;
  for (int i = 0; i < batches; ++i) {
    wait();
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < batch; ++k) enqueue();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  wait();
  std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
  return times[batches / 2] / batch;
}

const dvt_kernel& find_row(const dvt_backend& backend, const char* op) {
  for (uint64_t i = 0; i < backend.n_kernels; ++i)
    if (const dvt_kernel& row = *backend.kernels[i]; !std::strcmp(row.op, op))
      if (dvt::same(row.operands[0].dtype, dvt::f32)) return row;
  throw std::runtime_error("no such row");
}

double of_plugin(const char* path) {
  dvt_host host{};
  host.struct_size = sizeof host, host.abi_major = DVT_ABI_MAJOR, host.abi_draft = DVT_ABI_DRAFT;
  host.library_path = path, host.fail = fail, host.log = log;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const dvt_backend* backend;
  reinterpret_cast<decltype(&dvt_backend_v1)>(dlsym(library, "dvt_backend_v1"))(&host, &backend);
  dvt_device* device;
  dvt_stream* stream;
  backend->device_open(0, &device);
  backend->streams->create(device, 0, &stream);
  int64_t one = 1;
  DLTensor in{nullptr, {12, 0}, 1, dvt::f32, &one, &one, 0}, out = in;
  for (DLTensor* t : {&in, &out}) backend->alloc(device, 256, DVT_MEM_DEVICE, stream, &t->data);
  const DLTensor *ins[] = {&in}, *outs[] = {&out};
  dvt_call call{};
  call.struct_size = sizeof call, call.n_in = call.n_out = 1, call.in = ins, call.out = outs, call.stream = stream;
  const dvt_kernel& row = find_row(*backend, "dvt.floor");
  row.run(device, &call);
  return microseconds([&] { row.run(device, &call); }, [&] { backend->streams->sync(stream); });
}

double of_sycl(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  const std::vector<std::byte> code(bytes, bytes + text.size());
  const sycl::device device = sycl::device::get_devices().at(0);
  // The plugin does the same: a queue of the CPU device has profiling on, for the times of events.
  const bool stamps = device.has(sycl::aspect::ext_oneapi_queue_profiling_tag);
  const sycl::property::queue::in_order order;
  sycl::queue queue(device, stamps ? sycl::property_list{order}
                                   : sycl::property_list{order, sycl::property::queue::enable_profiling()});
  auto source = syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::spirv, code);
  auto bundle = syclex::build(source, {device});
  const sycl::kernel kernel = bundle.ext_oneapi_get_kernel("__sycl_kernel_floor_f32");
  float *in = sycl::malloc_device<float>(64, queue), *out = sycl::malloc_device<float>(64, queue);
  gpu::Layout<1> how{};
  how.rows = how.columns = 1;
  const auto enqueue = [&] {
    syclex::submit(queue, [&](sycl::handler& h) {
      h.set_arg(0, in), h.set_arg(1, out), h.set_arg(2, syclex::raw_kernel_arg(&how, sizeof how));
      h.parallel_for(sycl::nd_range<2>({1, 16}, {1, 16}), kernel);
    });
  };
  enqueue();
  return microseconds(enqueue, [&] { queue.wait(); });
}
}  // namespace

int main(int, char** paths) {
  const double plugin = of_plugin(paths[1]);  // first: it finds the CPU device's driver
  std::printf("%g %g\n", plugin, of_sycl(paths[2]));
}
