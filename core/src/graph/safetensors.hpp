// Safetensors, the container of .dvt files and of weights: a header in JSON, then the bytes of named tensors.
// https://github.com/huggingface/safetensors
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/json.hpp"
#include "graph/program.hpp"
#include "platform/platform.hpp"

namespace dovetail::safetensors {
constexpr uint64_t kAlignment = 64;            // of the data in the file
constexpr uint64_t kMostHeader = 100'000'000;  // readers refuse longer ones
constexpr const char* kMetadata = "__metadata__";

const char* dtype_name(DType);  // nullptr: the format has no such dtype
std::optional<DType> dtype_of(std::string_view name);

struct Entry {
  std::string name, dtype;
  std::vector<int64_t> shape;
  uint64_t begin, end;  // its bytes, counted from the beginning of the data
};

// What comes before the data. Throws Error(value) where it is longer than kMostHeader.
std::string header_of(const std::vector<Entry>&, Json metadata);

// A mapped file. Nothing in it is trusted, and of the tensors nothing is read. All errors are Error(value), without
// the file's name.
class File {
 public:
  explicit File(const std::string& path);
  const std::vector<Entry>& entries() const { return entries_; }  // in the header's order
  const Entry* find(std::string_view name) const;
  const Json* metadata() const { return metadata_ ? &*metadata_ : nullptr; }
  // Throws where dovetail has no such dtype, or the sizes do not give the number of bytes.
  HostArray array(const Entry&) const;
  HostArray array(const Entry&, DType, std::vector<int64_t> shape) const;

 private:
  Json read_header();
  void add_entry(const std::string& name, const Json&);
  void check_ranges() const;
  [[noreturn]] void cut_off(const std::string& what, uint64_t end) const;

  std::shared_ptr<platform::MappedFile> file_;
  std::span<const std::byte> bytes_;
  uint64_t data_ = 0;  // where it begins
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> places_;
  std::optional<Json> metadata_;
};
}  // namespace dovetail::safetensors
