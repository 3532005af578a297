// What a DLL's file says about it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dovetail::platform {
struct PeFile {
  bool is_pe = false;
  uint16_t machine = 0;             // IMAGE_FILE_MACHINE_*
  std::vector<std::string> needed;  // names of the DLLs that it imports
};
// Every offset is checked, as the bytes may be anything.
PeFile read_pe(std::span<const std::byte> bytes);
}  // namespace dovetail::platform
