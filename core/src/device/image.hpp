// Machine code as toolchains make it: position-independent images (docs/toolchains.md has the format).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.hpp"

namespace dovetail {
constexpr uint64_t kLargestImage = uint64_t{64} << 20;

class Code {  // an image in memory, ready to be run
 public:
  // Throws Error(value) where the bytes are no whole and sound image for this machine, Error(runtime) where the
  // system refuses to run them.
  explicit Code(std::string_view image);
  const void* entry(uint32_t index) const;  // nullptr: there is no such function
  uint64_t size() const { return size_; }
  std::string_view image() const { return {reinterpret_cast<const char*>(memory_->at()), size_t(size_)}; }
  // A line for each function, as perf reads them in /tmp/perf-PID.map: `name` and the function's number.
  std::string perf_map(const std::string& name) const;

 private:
  uint64_t size_;
  std::vector<uint64_t> entries_;
  std::unique_ptr<platform::CodeMemory> memory_;
};
}  // namespace dovetail
