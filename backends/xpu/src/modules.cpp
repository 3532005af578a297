#include "modules.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>

namespace gpu {
namespace {
namespace syclex = sycl::ext::oneapi::experimental;

struct Entry {
  std::string_view name;
  std::span<const std::byte> code;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry>& sorted = *[] {
    auto* all = new std::vector<Entry>;
    for (const Family* family : all_families())
      for (const KernelCode& k : family->kernels) all->push_back({k.name, {family->code + k.offset, k.size}});
    std::sort(all->begin(), all->end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return all;
  }();
  return sorted;
}

// Quotients and square roots of float32 as IEEE rounds them: without it Intel's compiler for GPUs takes the 2.5 ulp
// that OpenCL allows, and SPIR-V alone cannot ask for more. On GPUs a kernel that would spill registers, as
// attention does on Data Center GPUs, gets twice as many, for half as many threads.
const char* options(const sycl::device& device) {
  return device.get_backend() == sycl::backend::ext_oneapi_level_zero
             ? "-ze-fp32-correctly-rounded-divide-sqrt -ze-intel-enable-auto-large-GRF-mode"
             : "-cl-fp32-correctly-rounded-divide-sqrt";
}
}  // namespace

KernelId find_kernel(std::string_view name) {
  const auto& all = entries();
  const auto it = std::lower_bound(all.begin(), all.end(), name,
                                   [](const Entry& e, std::string_view wanted) { return e.name < wanted; });
  if (it == all.end() || it->name != name) throw std::logic_error("there is no kernel " + std::string(name));
  return KernelId(it - all.begin());
}

uint32_t count_kernels() { return uint32_t(entries().size()); }

LoadedKernels::LoadedKernels() : at_(count_kernels()) {}
LoadedKernels::~LoadedKernels() = default;

const sycl::kernel& LoadedKernels::load(KernelId id, const sycl::context& context, const sycl::device& device) {
  const std::lock_guard guard(loading_);
  if (const sycl::kernel* there = at_[id].load(std::memory_order_acquire)) return *there;
  const Entry& entry = entries()[id];
  const std::vector<std::byte> code(entry.code.begin(), entry.code.end());
  auto source = syclex::create_kernel_bundle_from_source(context, syclex::source_language::spirv, code);
  auto bundle = syclex::build(source, {device}, syclex::properties{syclex::build_options{options(device)}});
  owned_.push_back(std::make_unique<const sycl::kernel>(
      bundle.ext_oneapi_get_kernel("__sycl_kernel_" + std::string(entry.name))));
  at_[id].store(owned_.back().get(), std::memory_order_release);
  return *owned_.back();
}
}  // namespace gpu
