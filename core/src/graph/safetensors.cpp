#include "graph/safetensors.hpp"

#include <algorithm>

namespace dovetail::safetensors {
namespace {
struct Named {
  DType dtype;
  const char* name;
};
constexpr Named kNames[] = {
    {DType::b8, "BOOL"},
    {DType::i8, "I8"},
    {DType::i16, "I16"},
    {DType::i32, "I32"},
    {DType::i64, "I64"},
    {DType::u8, "U8"},
    {DType::u16, "U16"},
    {DType::u32, "U32"},
    {DType::u64, "U64"},
    {DType::f16, "F16"},
    {DType::bf16, "BF16"},
    {DType::f32, "F32"},
    {DType::f64, "F64"},
    {DType::c64, "C64"},
    {DType::f8e4m3fn, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"},
    {DType::f8e4m3fnuz, "F8_E4M3FNUZ"},
    {DType::f8e5m2fnuz, "F8_E5M2FNUZ"},
    {DType::f8e8m0fnu, "F8_E8M0"},
    {DType::f4e2m1fn, "F4"},
};
[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::value, why); }
}  // namespace

const char* dtype_name(DType t) {
  const auto* found = std::ranges::find(kNames, t, &Named::dtype);
  return found == std::end(kNames) ? nullptr : found->name;
}

std::optional<DType> dtype_of(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, [](const Named& n) { return std::string_view(n.name); });
  return found == std::end(kNames) ? std::nullopt : std::optional(found->dtype);
}

// ---- writing ----------------------------------------------------------------------------------------------------
std::string header_of(const std::vector<Entry>& entries, Json metadata) {
  Json header = Json::map();
  if (!metadata.members.empty()) header.members.emplace_back(kMetadata, std::move(metadata));
  for (const Entry& e : entries) {
    Json shape = Json::list();
    for (const int64_t n : e.shape) shape.items.emplace_back(n);
    header.members.emplace_back(e.name,
                                Json::map({{"dtype", e.dtype},
                                           {"shape", std::move(shape)},
                                           {"data_offsets", Json::list({int64_t(e.begin), int64_t(e.end)})}}));
  }
  const std::string text = header.dump();
  const uint64_t size = (8 + text.size() + kAlignment - 1) / kAlignment * kAlignment - 8;
  if (size > kMostHeader)
    refuse("a header of " + std::to_string(size) + " bytes: expected at most " + std::to_string(kMostHeader));
  std::string all(8, char());
  for (size_t i = 0; i < 8; ++i) all[i] = char(size >> 8 * i);
  all += text;
  all.resize(8 + size, ' ');
  return all;
}

// ---- reading ----------------------------------------------------------------------------------------------------
File::File(const std::string& path) {
  if (!platform::is_file(path)) throw Error(ErrorKind::no_file, "no such file: " + path);
  file_ = std::make_shared<platform::MappedFile>(path);
  if (!file_->error().empty()) refuse("it cannot be read: " + file_->error());
  bytes_ = file_->bytes();
  Json header = read_header();
  entries_.reserve(header.members.size());
  for (auto& [name, j] : header.members)
    if (name == kMetadata) metadata_ = std::move(j);
    else add_entry(name, j);
  for (size_t i = 0; i < entries_.size(); ++i) places_.emplace(entries_[i].name, i);
  check_ranges();
}

void File::cut_off(const std::string& what, uint64_t end) const {
  refuse("cut off: " + what + " ends at byte " + std::to_string(end) + ", the file has " +
         std::to_string(bytes_.size()));
}

Json File::read_header() {
  uint64_t size = 0;
  const bool begins = bytes_.size() >= 9 && bytes_[8] == std::byte('{');
  for (size_t i = 0; begins && i < 8; ++i) size |= uint64_t(bytes_[i]) << 8 * i;
  if (!begins) refuse("not a safetensors file");
  if (size > kMostHeader)
    refuse("a header of " + std::to_string(size) + " bytes: expected at most " + std::to_string(kMostHeader));
  if (size > bytes_.size() - 8) cut_off("the header", 8 + size);
  data_ = 8 + size;
  return parse_json({reinterpret_cast<const char*>(bytes_.data()) + 8, size});
}

void File::add_entry(const std::string& name, const Json& j) {
  try {
    Entry e{name, j.at("dtype", "its entry").as_string("dtype"), {}, 0, 0};
    for (const Json& n : j.at("shape", "its entry").as_list("shape")) e.shape.push_back(n.as_integer("shape"));
    const auto& offsets = j.at("data_offsets", "its entry").as_list("data_offsets");
    if (offsets.size() != 2) refuse("expected two data_offsets");
    const int64_t begin = offsets[0].as_integer("data_offsets"), end = offsets[1].as_integer("data_offsets");
    if (begin < 0 || end < begin)
      refuse("offsets " + std::to_string(begin) + " and " + std::to_string(end) + ": expected 0 or more, in order");
    e.begin = uint64_t(begin), e.end = uint64_t(end);
    entries_.push_back(std::move(e));
  } catch (const Error& e) {
    refuse("tensor " + name + ": " + e.what());
  }
  if (const uint64_t end = entries_.back().end; end > bytes_.size() - data_) cut_off("tensor " + name, data_ + end);
}

// Each tensor begins where another one ends, and the last one ends with the file.
void File::check_ranges() const {
  std::vector<const Entry*> in_order;
  for (const Entry& e : entries_) in_order.push_back(&e);
  std::ranges::sort(in_order, {}, [](const Entry* e) { return std::pair(e->begin, e->end); });
  uint64_t at = 0;
  for (const Entry* e : in_order) {
    if (e->begin != at)
      refuse("tensor " + e->name + " begins at byte " + std::to_string(e->begin) + " of the data: expected " +
             std::to_string(at) + ", where the one before it ends");
    at = e->end;
  }
  if (const uint64_t rest = bytes_.size() - data_ - at)
    refuse("the file has " + std::to_string(rest) + " bytes behind its last tensor");
}

const Entry* File::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

HostArray File::array(const Entry& e) const {
  const std::optional<DType> dtype = dtype_of(e.dtype);
  if (!dtype) refuse("tensor " + e.name + ": dovetail has no dtype " + e.dtype);
  return array(e, *dtype, e.shape);
}

HostArray File::array(const Entry& e, DType dtype, std::vector<int64_t> shape) const {
  HostArray made{dtype, std::move(shape), bytes_.data() + data_ + e.begin, file_};
  uint64_t bytes = 0;
  try {
    bytes = made.type().bytes();
  } catch (const Error& why) {
    refuse("tensor " + e.name + ": " + why.what());
  }
  if (bytes != e.end - e.begin)
    refuse("tensor " + e.name + ": " + std::to_string(e.end - e.begin) + " bytes, expected " +
           std::to_string(bytes) + " of its dtype and shape");
  return made;
}
}  // namespace dovetail::safetensors
