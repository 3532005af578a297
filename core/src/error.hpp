// Errors of the runtime. Each kind becomes the Python exception of the same name.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace dovetail {
enum class ErrorKind {
  type,
  value,
  index,
  memory,
  not_implemented,
  device_lost,
  runtime,
  axis,           // Python: AxisError
  overflow,       // a number that its dtype cannot hold
  buffer,         // memory of others that cannot be shared
  no_file,        // Python: FileNotFoundError
  no_permission,  // Python: PermissionError
  is_folder,      // where a file was expected; Python: IsADirectoryError
  file,           // what else the system reports of a file; Python: OSError
};

// what() reads "[op] what happened: got X, expected Y; cure". `cure`: what the user can do about it; "" where the
// message says it or nothing helps. Python's exception has it as its attribute `cure`.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string cure = {})
      : std::runtime_error(cure.empty() ? message : message + "; " + cure), kind(kind), cure(std::move(cure)) {}
  // The same of a place, as "[m.dvt] " or "manifest.json: ".
  Error within(const std::string& place) const { return {kind, place + without_cure(), cure}; }
  std::string without_cure() const {
    const std::string_view all = what();
    return std::string(all.substr(0, all.size() - (cure.empty() ? 0 : cure.size() + 2)));
  }
  const ErrorKind kind;
  const std::string cure;
};
}  // namespace dovetail
