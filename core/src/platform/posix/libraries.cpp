// Opens shared libraries together with the libraries that they need.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "platform/platform.hpp"

#if defined(__linux__)
#include <elf.h>
#endif

namespace dovetail::platform {
namespace {
#if defined(__linux__)
// The DT_NEEDED names of a 64-bit ELF file; every offset in it is checked, as the file may be anything.
class ElfFile {
 public:
  explicit ElfFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::vector<std::string> needed() const {
    std::vector<std::string> names;
    Elf64_Ehdr header;
    if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64)
      return names;
    uint64_t dynamic = 0, dynamic_size = 0;
    for (int i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!read(header.e_phoff + i * sizeof segment, segment)) return names;
      if (segment.p_type == PT_DYNAMIC) dynamic = segment.p_offset, dynamic_size = segment.p_filesz;
    }
    std::vector<uint64_t> at;  // in the string table
    uint64_t strings = 0;      // its address
    Elf64_Dyn entry;
    for (uint64_t i = 0; i < dynamic_size / sizeof entry && read(dynamic + i * sizeof entry, entry); ++i) {
      if (entry.d_tag == DT_NEEDED) at.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = file_offset(header, entry.d_un.d_ptr);
    }
    for (const uint64_t offset : at) {
      std::string name = text(strings + offset);
      if (strings && !name.empty()) names.push_back(std::move(name));
    }
    return names;
  }

 private:
  template <class T>
  bool read(uint64_t offset, T& to) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof to) return false;
    std::memcpy(&to, bytes_.data() + offset, sizeof to);
    return true;
  }
  uint64_t file_offset(const Elf64_Ehdr& header, uint64_t address) const {
    Elf64_Phdr segment;
    for (int i = 0; i < header.e_phnum && read(header.e_phoff + i * sizeof segment, segment); ++i)
      if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    return 0;
  }
  std::string text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const auto begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    const auto end = std::find(begin, begin + (bytes_.size() - offset), '\0');
    return {begin, end};
  }
  std::span<const std::byte> bytes_;
};

std::vector<std::string> needed_libraries(const std::string& path) {
  return ElfFile(MappedFile(path).bytes()).needed();
}
#else
std::vector<std::string> needed_libraries(const std::string&) { return {}; }
#endif

void* open_one(const std::string& path, std::string& error) {
  dlerror();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    error = why ? why : "the system's loader gave no reason";
  }
  return library;
}

// The loader accepts a loaded library for a needed one of the same name. So this opens those of the search folders
// first, each after the libraries that it needs itself.
void open_needed(const std::string& path, const std::vector<std::string>& search, std::set<std::string>& visited,
                 std::string& problems) {
  for (const std::string& name : needed_libraries(path))
    for (const std::string& folder : search) {
      const std::string found = folder + "/" + name;
      if (!is_file(found)) continue;
      if (!visited.insert(found).second) break;
      open_needed(found, search, visited, problems);
      std::string error;
      if (!open_one(found, error)) problems += " (" + error + ")";
      break;
    }
}
}  // namespace

void* open_library(const std::string& path, const std::vector<std::string>& search, LibraryError& error) {
  std::string problems;
  std::set<std::string> visited{path};
  if (!search.empty()) open_needed(path, search, visited, problems);
  void* library = open_one(path, error.text);
  if (library) return library;
  const bool missing = error.text.find("cannot open shared object file") != std::string::npos;
  if (missing && error.text.starts_with(path + ":"))  // glibc's message for a library of another machine, too
    error = {LibraryError::wrong_machine, path + " is built for another kind of processor"};
  else if (missing) error.kind = LibraryError::missing;
  error.text += problems;
  return nullptr;
}

void* find_symbol(void* library, const char* name) { return dlsym(library, name); }

std::string library_name(const std::string& stem) {
#ifdef __APPLE__
  return "lib" + stem + ".dylib";
#else
  return "lib" + stem + ".so";
#endif
}

std::string program_name(const std::string& stem) { return stem; }

std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return {};
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash);
}
}  // namespace dovetail::platform
