// The kernels that were compiled into the library, by name.
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

// Adds a kernel when the library is loaded.
class Registration {
 public:
  template <class... P>
  Registration(const char* name, unsigned most_threads, void (*)(P...), void (*call)(const std::byte*))
      : Registration({name, most_threads, layout<P...>, call}) {}

  template <auto kernel>
  static void call(const std::byte* arguments) {
    apply(kernel, arguments);
  }

 private:
  explicit Registration(const Kernel&);

  // CUDA's layout of parameters: consecutive and aligned.
  template <class... P>
  static constexpr std::array<Parameter, sizeof...(P)> layout = [] {
    size_t end = 0;
    [[maybe_unused]] const auto next = [&](size_t size, size_t alignment) {
      const size_t offset = (end + alignment - 1) / alignment * alignment;
      end = offset + size;
      return Parameter{offset, size};
    };
    return std::array<Parameter, sizeof...(P)>{next(sizeof(P), alignof(P))...};
  }();

  template <class... P>
  static void apply(void (*kernel)(P...), const std::byte* arguments) {
    [&]<size_t... i>(std::index_sequence<i...>) {
      kernel(*reinterpret_cast<const P*>(arguments + layout<P...>[i].offset)...);
    }(std::index_sequence_for<P...>());
  }
};
}  // namespace emulator

// In the file that includes a family, once for each KERNEL(threads, name) of it.
#define EMULATOR_REGISTER(name)                                                        \
  static const emulator::Registration name##_registration(#name, name##_threads, name, \
                                                          emulator::Registration::call<name>);
