// Errors of the runtime. Each kind becomes the Python exception of the same name.
#pragma once
#include <stdexcept>
#include <string>

namespace dovetail {
enum class ErrorKind { type, value, index, memory, not_implemented, device_lost, runtime, axis };

// Messages read "[op] what is wrong: expected ..., got ..., and the cure where there is one".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  const ErrorKind kind;
};
}  // namespace dovetail
