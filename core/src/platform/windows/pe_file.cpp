#include "platform/windows/pe_file.hpp"

#include <algorithm>
#include <cstring>

#include "platform/windows/windows.hpp"

namespace dovetail::platform {
namespace {
constexpr uint64_t kMostImports = 4096;

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  PeFile read() {
    PeFile file;
    IMAGE_DOS_HEADER dos;
    DWORD signature;
    IMAGE_FILE_HEADER header;
    if (!get(0, dos) || dos.e_magic != IMAGE_DOS_SIGNATURE || dos.e_lfanew < 0) return file;
    const uint64_t at = uint64_t(dos.e_lfanew);
    if (!get(at, signature) || signature != IMAGE_NT_SIGNATURE || !get(at + 4, header)) return file;
    file.is_pe = true, file.machine = header.Machine;
    IMAGE_OPTIONAL_HEADER64 optional;
    const uint64_t optional_at = at + 4 + sizeof header;
    if (!get(optional_at, optional) || optional.Magic != IMAGE_NT_OPTIONAL_HDR64_MAGIC) return file;
    IMAGE_SECTION_HEADER section;
    for (uint64_t i = 0; i < header.NumberOfSections; ++i)
      if (get(optional_at + header.SizeOfOptionalHeader + i * sizeof section, section))
        sections_.push_back(section);
    if (optional.NumberOfRvaAndSizes > IMAGE_DIRECTORY_ENTRY_IMPORT)
      read_imports(optional.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress, file.needed);
    return file;
  }

 private:
  template <class T>
  bool get(uint64_t offset, T& to) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof to) return false;
    std::memcpy(&to, bytes_.data() + offset, sizeof to);
    return true;
  }
  uint64_t file_offset(uint32_t address) const {
    for (const IMAGE_SECTION_HEADER& s : sections_)
      if (address >= s.VirtualAddress && address - s.VirtualAddress < s.SizeOfRawData)
        return uint64_t{s.PointerToRawData} + (address - s.VirtualAddress);
    return 0;
  }
  void read_imports(uint32_t address, std::vector<std::string>& names) const {
    const uint64_t begin = address ? file_offset(address) : 0;
    IMAGE_IMPORT_DESCRIPTOR import;
    for (uint64_t i = 0; begin && i < kMostImports && get(begin + i * sizeof import, import) && import.Name; ++i)
      if (std::string name = text(file_offset(import.Name)); !name.empty()) names.push_back(std::move(name));
  }
  std::string text(uint64_t offset) const {
    if (!offset || offset >= bytes_.size()) return {};
    const auto begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    const auto end = std::find(begin, begin + (bytes_.size() - offset), '\0');
    return {begin, end};
  }
  std::span<const std::byte> bytes_;
  std::vector<IMAGE_SECTION_HEADER> sections_;
};
}  // namespace

PeFile read_pe(std::span<const std::byte> bytes) { return Reader(bytes).read(); }
}  // namespace dovetail::platform
