#include "driver/libraries.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "dovetail/backend.hpp"

namespace gpu {
namespace {
namespace fs = std::filesystem;
using Folders = std::vector<fs::path>;

void add_from_environment(Folders& folders) {
  const char* const value = std::getenv(libraries_variable);
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void add_from_entry_point(Folders& folders) {
  if (!dvt::host || !DVT_HAS(dvt::host, dvt_host, extension)) return;
  const void* const found = dvt::host->extension(dvt::host, "dovetail.search", DVT_X_SEARCH);
  for (auto folder = static_cast<const char* const*>(found); folder && *folder; ++folder)
    folders.emplace_back(*folder);
}

void add_beside_package(Folders& folders) {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&add_beside_package), &self) && self.dli_fname)
    folders.push_back(fs::absolute(self.dli_fname).parent_path().parent_path() / "nvidia");
}

Folders folders_to_search() {
  Folders folders;
  add_from_environment(folders), add_from_entry_point(folders), add_beside_package(folders);
  return folders;
}

void* open_one(const fs::path& path, int flags = 0) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags); }

std::string listed(const Folders& folders) {
  std::string text;
  for (const fs::path& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}
}  // namespace

Library::Library(const WheelLibrary& library) : library_(library) { open(); }

Library::Library(const WheelLibrary& library, std::span<const WheelLibrary> needs) : library_(library) {
  for (const WheelLibrary& need : needs) {
    const Library opened(need);
    if (opened) continue;
    missing_ = std::string(library.title) + " needs what is missing: " + opened.missing();
    return;
  }
  open();
}

void Library::open() {
  if ((handle_ = open_one(library_.soname, RTLD_NOLOAD))) return;
  const Folders folders = folders_to_search();
  for (const fs::path& folder : folders)
    for (const fs::path& path : {folder / library_.folder / library_.soname, folder / library_.soname}) {
      if ((handle_ = open_one(path))) return;
      const char* const why = dlerror();
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      missing_ = std::string(library_.title) + " cannot be opened: " + (why ? why : path.c_str()) + cure();
      return;
    }
  if ((handle_ = open_one(library_.soname))) return;
  missing_ = std::string("there is no ") + library_.title + ": " + library_.soname + " is neither in " +
             listed(folders) + " nor where the system looks for libraries" + cure();
}

void* Library::symbol(const char* name) {
  if (!missing_.empty()) return nullptr;
  void* const found = dlsym(handle_, name);
  if (!found) missing_ = std::string(library_.title) + " is too old: it has no " + name + cure();
  return found;
}

bool Library::has(const char* name) const { return dlsym(handle_, name); }

std::string Library::cure() const {
  return std::string("; pip install -U 'dovetail-cuda[") + library_.extra + "]', or name its folder in " +
         libraries_variable;
}

bool is_usable(const std::string& missing) {
  if (missing.empty()) return true;
  dvt::host->log(dvt::host, 2,
                 (missing + "; until then slower kernels of dovetail-cuda's own do its work").c_str());
  return false;
}
}  // namespace gpu
