// Kernels by name: those that were compiled into the library, and how one is described.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace emulator {
struct Parameter {
  size_t offset, size;
};

struct Kernel {
  const char* name;
  unsigned most_threads;  // the bound of its blocks
  std::span<const Parameter> parameters;
  void (*call)(const std::byte* arguments);

  size_t argument_bytes() const {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
  }
};

const Kernel* find_kernel(std::string_view name);  // nullptr if there is none

template <class... P>
struct Parameters {
  // CUDA's layout of parameters: consecutive and aligned.
  static constexpr std::array<Parameter, sizeof...(P)> layout = [] {
    size_t end = 0;
    [[maybe_unused]] const auto next = [&](size_t size, size_t alignment) {
      const size_t offset = (end + alignment - 1) / alignment * alignment;
      end = offset + size;
      return Parameter{offset, size};
    };
    return std::array<Parameter, sizeof...(P)>{next(sizeof(P), alignof(P))...};
  }();

  static void apply(void (*kernel)(P...), const std::byte* arguments) {
    [&]<size_t... i>(std::index_sequence<i...>) {
      kernel(*reinterpret_cast<const P*>(arguments + layout[i].offset)...);
    }(std::index_sequence_for<P...>());
  }
};

template <auto kernel>
Kernel describe(const char* name, unsigned most_threads) {
  return [&]<class... P>(void (*)(P...)) {
    return Kernel{name, most_threads, Parameters<P...>::layout,
                  [](const std::byte* arguments) { Parameters<P...>::apply(kernel, arguments); }};
  }(kernel);
}

// Adds a kernel when the library is loaded.
class Registration {
 public:
  explicit Registration(const Kernel&);
};
}  // namespace emulator

// In the file that includes a family, once for each KERNEL(threads, name) of it.
#define EMULATOR_REGISTER(name) \
  static const emulator::Registration name##_registration(emulator::describe<name>(#name, name##_threads));

// A shared library with this is, to cuLibraryLoadData, the code of one kernel. All else in it must be hidden: the
// types of its kernel have the names of those of other libraries.
#define EMULATOR_CODE(name, most_threads)                                                       \
  extern "C" __attribute__((visibility("default"))) const emulator::Kernel& emulated_kernel() { \
    static const emulator::Kernel kernel = emulator::describe<name>(#name, most_threads);       \
    return kernel;                                                                              \
  }
