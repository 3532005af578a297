// Opens DLLs together with the DLLs that they need.
#include <algorithm>
#include <cstring>
#include <set>

#include "platform/platform.hpp"
#include "platform/windows/pe_file.hpp"
#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
// The folder of the DLL itself and the system's; neither PATH nor the current folder. The loader knows no folder
// that is written with slashes.
HMODULE open_one(const std::string& path) {
  std::wstring wide = to_wide_path(path);
  std::replace(wide.begin(), wide.end(), L'/', L'\\');
  return LoadLibraryExW(wide.c_str(), nullptr, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of("/\\")); }

// The DLL of that name in the folders; empty: there is none.
std::string find_in(const std::vector<std::string>& folders, const std::string& name) {
  for (const std::string& folder : folders)
    if (std::string found = folder + "/" + name; is_file(found)) return found;
  return {};
}

bool is_loaded(const std::string& name) { return GetModuleHandleW(to_wide(name).c_str()) != nullptr; }

bool system_has(const std::string& name) {
  if (name.starts_with("api-ms-") || name.starts_with("ext-ms-")) return true;  // the loader makes these names up
  wchar_t folder[MAX_PATH];
  const UINT n = GetSystemDirectoryW(folder, MAX_PATH);
  return n < MAX_PATH && is_file(to_utf8({folder, n}) + "/" + name);
}

// The loader accepts a loaded DLL for a needed one of the same name. So this opens those of the search folders
// first, each after the DLLs that it needs itself.
void open_needed(const std::string& path, const std::vector<std::string>& search, std::set<std::string>& visited,
                 std::string& problems) {
  for (const std::string& name : read_pe(MappedFile(path).bytes()).needed) {
    const std::string found = is_loaded(name) ? std::string() : find_in(search, name);
    if (found.empty() || !visited.insert(found).second) continue;
    open_needed(found, search, visited, problems);
    if (!open_one(found)) problems += " (" + found + ": " + last_error() + ")";
  }
}

// The first DLL that it needs, itself or through another, and that is nowhere: "it needs a.dll, which ...".
std::string missing_one(const std::string& path, std::vector<std::string> search, std::set<std::string>& visited) {
  search.push_back(folder_of(path));
  for (const std::string& name : read_pe(MappedFile(path).bytes()).needed) {
    if (is_loaded(name)) continue;
    const std::string found = find_in(search, name);
    if (found.empty() && !system_has(name))
      return path + " needs " + name + ", which is in none of its folders (" + search.back() + ")";
    if (found.empty() || !visited.insert(found).second) continue;
    if (std::string deeper = missing_one(found, search, visited); !deeper.empty()) return deeper;
  }
  return {};
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case IMAGE_FILE_MACHINE_AMD64: return "x86-64";
    case IMAGE_FILE_MACHINE_I386: return "32-bit x86";
    case IMAGE_FILE_MACHINE_ARM64: return "Arm64";
    default: return "the machine " + std::to_string(machine);
  }
}

// Why the loader says that a file is no DLL.
LibraryError what_else(const std::string& path, const std::string& system_error) {
  const MappedFile file(path);
  const PeFile pe = read_pe(file.bytes());
  constexpr uint16_t ours = IMAGE_FILE_MACHINE_AMD64;
  if (pe.is_pe && pe.machine != ours)
    return {LibraryError::wrong_machine, path + " is built for another kind of processor: " +
                                             machine_name(pe.machine) + ", expected " + machine_name(ours)};
  const auto starts_with = [&](const char* magic) {
    const size_t n = std::strlen(magic);
    return file.bytes().size() >= n && !std::memcmp(file.bytes().data(), magic, n);
  };
  if (starts_with("\x7f"
                  "ELF"))
    return {LibraryError::wrong_machine, path + " is built for another system: it is a library of Linux"};
  if (!pe.is_pe) return {LibraryError::other, path + " is no DLL: " + system_error};
  return {LibraryError::other, path + " is damaged: " + system_error};
}
}  // namespace

void* open_library(const std::string& path, const std::vector<std::string>& search, LibraryError& error) {
  std::string problems;
  std::set<std::string> visited{path};
  if (!search.empty()) open_needed(path, search, visited, problems);
  if (const HMODULE library = open_one(path)) return reinterpret_cast<void*>(library);
  const DWORD code = GetLastError();
  error = {LibraryError::other, path + ": " + error_text(code)};
  visited = {path};
  if (code == ERROR_BAD_EXE_FORMAT) {
    error = what_else(path, error_text(code));
  } else if (code == ERROR_MOD_NOT_FOUND) {
    error.kind = LibraryError::missing;
    if (std::string missing = missing_one(path, search, visited); !missing.empty()) error.text = missing;
  }
  error.text += problems;
  return nullptr;
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}

std::string library_name(const std::string& stem) { return stem + ".dll"; }
std::string program_name(const std::string& stem) { return stem + ".exe"; }

std::string own_folder() {
  HMODULE self = nullptr;
  if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                          reinterpret_cast<const wchar_t*>(&own_folder), &self))
    return {};
  std::wstring path(MAX_PATH, L'\0');
  DWORD n;
  while ((n = GetModuleFileNameW(self, path.data(), DWORD(path.size()))) == path.size()) path.resize(2 * n);
  path.resize(n);
  return folder_of(to_utf8(path));
}
}  // namespace dovetail::platform
