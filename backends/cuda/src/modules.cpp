#include "modules.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace gpu {
namespace {
struct LoadedFamily {
  const Family* family;
  CUlibrary library = nullptr;  // of every context
};
struct Entry {
  std::string_view name;
  LoadedFamily* from;
  std::atomic<CUkernel> kernel = nullptr;

  Entry(const char* n, LoadedFamily* f) : name(n), from(f) {}
};
struct Kernels {
  std::vector<std::unique_ptr<LoadedFamily>> families;
  std::vector<std::unique_ptr<Entry>> sorted;
  std::mutex loading;
};

// There until the process has ended: so are the driver's libraries.
Kernels& kernels() {
  static Kernels& all = *[] {
    auto* k = new Kernels;
    for (const Family* family : all_families()) {
      k->families.push_back(std::make_unique<LoadedFamily>(family));
      for (const char* name = family->kernels; *name; name += std::strlen(name) + 1)
        k->sorted.push_back(std::make_unique<Entry>(name, k->families.back().get()));
    }
    std::ranges::sort(k->sorted, {}, [](const auto& e) { return e->name; });
    return k;
  }();
  return all;
}

void check_parameters(const Entry& entry, CUkernel kernel, std::span<const size_t> bytes) {
  size_t offset = 0, size = 0, n = 0;
  bool same = true;
  for (; driver().cuKernelGetParamInfo(kernel, n, &offset, &size) == CUDA_SUCCESS; ++n)
    same = same && n < bytes.size() && bytes[n] == size;
  if (!same || n != bytes.size())
    throw std::logic_error("the kernel " + std::string(entry.name) + " has other parameters than its launch: " +
                           std::to_string(n) + " for " + std::to_string(bytes.size()));
}

CUkernel load(Entry& entry, std::span<const size_t> parameter_bytes) {
  const std::lock_guard guard(kernels().loading);
  if (CUkernel there = entry.kernel) return there;
  LoadedFamily& from = *entry.from;
  if (!from.library)
    GPU_CALL(cuLibraryLoadData(&from.library, from.family->code, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  GPU_CALL(cuLibraryGetKernel(&kernel, from.library, entry.name.data()));
  check_parameters(entry, kernel, parameter_bytes);
  entry.kernel = kernel;
  return kernel;
}
}  // namespace

KernelId find_kernel(std::string_view name) {
  const auto& all = kernels().sorted;
  const auto it = std::ranges::lower_bound(all, name, {}, [](const auto& e) { return e->name; });
  if (it == all.end() || (*it)->name != name) throw std::logic_error("there is no kernel " + std::string(name));
  return KernelId(it - all.begin());
}

CUkernel load_kernel(KernelId id, std::span<const size_t> parameter_bytes) {
  Entry& entry = *kernels().sorted[id];
  const CUkernel there = entry.kernel.load(std::memory_order_acquire);
  return there ? there : load(entry, parameter_bytes);
}
}  // namespace gpu
