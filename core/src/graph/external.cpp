#include "graph/external.hpp"

#include <string_view>

#include "error.hpp"
#include "platform/paths.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
constexpr size_t kMostName = 1024;  // bytes

// Relative, below the folder that it is looked up in, and with one spelling.
bool is_plain(const std::string& name) {
  if (name.empty() || name.size() > kMostName || name.find('\\') != std::string::npos ||
      name.find('\0') != std::string::npos || name.find(':') != std::string::npos)
    return false;
  for (std::string_view rest = name;;) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == rest.size()) return true;
    rest.remove_prefix(part.size() + 1);
  }
}

bool is_below(std::string_view file, std::string_view folder) {
  return file.starts_with(folder) && (folder.ends_with('/') || file.substr(folder.size()).starts_with('/'));
}

// The folder of a Hugging Face cache that has the files of <repository>/snapshots/<revision>/...; empty elsewhere.
std::string blobs_of(const std::string& folder) {
  constexpr std::string_view snapshots = "/snapshots/";
  const size_t at = folder.rfind(snapshots);
  if (at == std::string::npos || at + snapshots.size() == folder.size()) return {};
  return folder.substr(0, at) + "/blobs";
}
}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = platform::from_path(platform::to_path(path).parent_path());
  return folder.empty() || folder.ends_with('/') ? folder : folder + "/";
}

std::string misplaced(const std::string& path, const std::string& name) {
  if (!is_plain(name))
    return "it leaves the program's folder: expected a relative name, with '/' between its parts and without '..'";
  const std::string home = folder_of(path), folder = platform::resolved(home.empty() ? "." : home);
  const std::string file = platform::resolved(home + name);
  if (file.empty()) return "there is no such file in the program's folder";
  const std::string blobs = blobs_of(folder);
  if (is_below(file, folder) || (!blobs.empty() && is_below(file, blobs))) return {};
  return "it leaves the program's folder: it is a link to " + file;
}

std::string external_file(const std::string& path, const std::string& name) {
  if (const std::string why = misplaced(path, name); !why.empty()) throw Error(ErrorKind::value, why);
  return platform::resolved(folder_of(path) + name);
}
}  // namespace dovetail
