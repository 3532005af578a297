#include "graph/file.hpp"

#include <algorithm>
#include <unordered_set>

#include "graph/content_hash.hpp"
#include "graph/text.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
constexpr uint64_t kAlignment = 64;            // of tensors in the file
constexpr uint64_t kMostHeader = 100'000'000;  // readers of safetensors refuse longer ones
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kFormat = "dovetail";

uint64_t aligned(uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// What safetensors calls a dtype; nullptr: it cannot name it, and the elements are stored as bytes, U8.
const char* stored_dtype(DType t) {
  switch (t) {
    case DType::b8: return "BOOL";
    case DType::i8: return "I8";
    case DType::i16: return "I16";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::u8: return "U8";
    case DType::u16: return "U16";
    case DType::u32: return "U32";
    case DType::u64: return "U64";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::f32: return "F32";
    case DType::f64: return "F64";
    case DType::c64: return "C64";
    case DType::f8e4m3fn: return "F8_E4M3";
    case DType::f8e5m2: return "F8_E5M2";
    default: return nullptr;
  }
}

Json shape_json(DType dtype, const std::vector<int64_t>& shape, uint64_t bytes) {
  Json j = Json::list();
  if (!stored_dtype(dtype)) j.items.emplace_back(int64_t(bytes));
  else
    for (const int64_t n : shape) j.items.emplace_back(n);
  return j;
}
const char* or_bytes(const char* name) { return name ? name : "U8"; }

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// ---- writing ----------------------------------------------------------------------------------------------------
class FileWriter {
 public:
  explicit FileWriter(const Program& program) {
    const Json text = to_json(program);
    header_ = Json::map(
        {{kMetadata,
          Json::map({{"format", kFormat}, {"program", text.dump()}, {"sha256", to_hex(content_hash(text))}})}});
    for (const Program::Array& a : program.arrays) names_.insert(a.name);
    for (const Program::Array& a : program.arrays) add(a);
  }

  void write(const std::string& path) {
    std::string header = header_.dump();
    header.resize(aligned(8 + header.size()) - 8, ' ');
    if (header.size() > kMostHeader)
      throw Error(ErrorKind::value, "[" + file_name(path) + "] a header of " + std::to_string(header.size()) +
                                        " bytes: expected at most " + std::to_string(kMostHeader));
    std::string size(8, char());
    for (size_t i = 0; i < 8; ++i) size[i] = char(header.size() >> 8 * i);
    data_.insert(data_.begin(), {size, header});
    if (const std::string error = platform::replace_file(path, data_); !error.empty())
      throw Error(ErrorKind::runtime, "[" + file_name(path) + "] it cannot be written: " + error);
  }

 private:
  void entry(const std::string& name, const char* dtype, Json shape, std::string_view data) {
    const auto begin = int64_t(offset_);
    offset_ += data.size();
    header_.members.emplace_back(name, Json::map({{"dtype", dtype},
                                                  {"shape", std::move(shape)},
                                                  {"data_offsets", Json::list({begin, int64_t(offset_)})}}));
    data_.push_back(data);
  }

  void add(const Program::Array& a) {
    static constexpr char zeros[kAlignment] = {};
    if (const uint64_t gap = aligned(offset_) - offset_) {  // safetensors allows no holes
      std::string name;
      do name = "pad" + std::to_string(n_pads_++);
      while (names_.contains(name));
      entry(name, "U8", Json::list({int64_t(gap)}), {zeros, gap});
    }
    const uint64_t bytes = a.elements.type().bytes();
    entry(a.name, or_bytes(stored_dtype(a.elements.dtype)), shape_json(a.elements.dtype, a.elements.shape, bytes),
          {reinterpret_cast<const char*>(a.elements.data), bytes});
  }

  Json header_;
  std::unordered_set<std::string_view> names_;
  std::vector<std::string_view> data_;
  uint64_t offset_ = 0, n_pads_ = 0;
};

// ---- reading ----------------------------------------------------------------------------------------------------
class FileReader {
 public:
  explicit FileReader(const std::string& path) : file_(std::make_shared<platform::MappedFile>(path)) {
    if (!file_->error().empty()) throw Error(ErrorKind::value, "it cannot be read: " + file_->error());
    bytes_ = file_->bytes();
    read_header();
    check_tensors();
  }

  std::shared_ptr<const Program> program() const {
    const Json* metadata = header_.find(kMetadata);
    const auto text = [&](const char* key) -> const std::string* {
      const Json* j = metadata ? metadata->find(key) : nullptr;
      return j && j->kind == Json::string ? &j->text : nullptr;
    };
    const std::string *format = text("format"), *program = text("program"), *hash = text("sha256");
    if (!format || *format != kFormat || !program || !hash)
      throw Error(ErrorKind::value, "not a dovetail file: a safetensors file without a program");
    const Json document = parse_json(*program);
    if (const std::string own = to_hex(content_hash(document)); own != *hash)
      throw Error(ErrorKind::value, "its program was changed: the sha256 is " + own + ", expected " + *hash);
    return program_of(document, [this](const std::string& name, DType dtype, std::vector<int64_t> shape) {
      return tensor(name, dtype, std::move(shape));
    });
  }

 private:
  void read_header() {
    uint64_t size = 0;
    const bool begins = bytes_.size() >= 9 && bytes_[8] == std::byte('{');
    for (size_t i = 0; begins && i < 8; ++i) size |= uint64_t(bytes_[i]) << 8 * i;
    if (!begins || size > kMostHeader) throw Error(ErrorKind::value, "not a dovetail file: expected safetensors");
    if (size > bytes_.size() - 8) cut_off("the header", 8 + size);
    header_ = parse_json({reinterpret_cast<const char*>(bytes_.data()) + 8, size});
    data_ = 8 + size;
  }

  [[noreturn]] void cut_off(const std::string& what, uint64_t end) const {
    throw Error(ErrorKind::value, "cut off: " + what + " ends at byte " + std::to_string(end) + ", the file has " +
                                      std::to_string(bytes_.size()));
  }

  // Each tensor begins where another one ends, and the last one ends with the file.
  void check_tensors() {
    struct Range {
      uint64_t begin, end;
      const std::string* name;
    };
    std::vector<Range> ranges;
    for (const auto& [name, j] : header_.members) {
      if (name == kMetadata) continue;
      const auto& offsets = j.at("data_offsets", "a tensor").as_list("data_offsets");
      if (offsets.size() != 2) throw Error(ErrorKind::value, "tensor " + name + ": expected two data_offsets");
      const int64_t begin = offsets[0].as_integer("an offset"), end = offsets[1].as_integer("an offset");
      if (begin < 0 || end < begin)
        throw Error(ErrorKind::value, "tensor " + name + ": offsets " + std::to_string(begin) + " and " +
                                          std::to_string(end) + ": expected 0 or more, in order");
      if (uint64_t(end) > bytes_.size() - data_) cut_off("tensor " + name, data_ + uint64_t(end));
      ranges.push_back({uint64_t(begin), uint64_t(end), &name});
    }
    std::ranges::sort(ranges, {}, [](const Range& r) { return std::pair(r.begin, r.end); });
    uint64_t at = 0;
    for (const Range& r : ranges) {
      if (r.begin != at)
        throw Error(ErrorKind::value, "tensor " + *r.name + " begins at byte " + std::to_string(r.begin) +
                                          " of the data: expected " + std::to_string(at) +
                                          ", where the one before it ends");
      at = r.end;
    }
    if (at != bytes_.size() - data_)
      throw Error(ErrorKind::value,
                  "the file has " + std::to_string(bytes_.size() - data_ - at) + " bytes behind its last tensor");
  }

  HostArray tensor(const std::string& name, DType dtype, std::vector<int64_t> shape) const {
    const Json* j = name == kMetadata ? nullptr : header_.find(name);
    if (!j) throw Error(ErrorKind::value, "it has no tensor " + name + ", which its program needs");
    HostArray made{dtype, std::move(shape), nullptr, file_};
    const uint64_t bytes = made.type().bytes();
    const std::string& stored = j->at("dtype", "a tensor").as_string("a tensor's dtype");
    const auto& offsets = j->at("data_offsets", "a tensor").items;
    const auto begin = uint64_t(offsets[0].i), end = uint64_t(offsets[1].i);
    if (stored != or_bytes(stored_dtype(dtype)) ||
        j->at("shape", "a tensor").dump() != shape_json(dtype, made.shape, bytes).dump() || end - begin != bytes)
      throw Error(ErrorKind::value, "tensor " + name + ": dtype, shape or size are not those of the program, " +
                                        info(dtype).name + " in " + std::to_string(bytes) + " bytes");
    made.data = bytes_.data() + data_ + begin;
    return made;
  }

  std::shared_ptr<platform::MappedFile> file_;
  std::span<const std::byte> bytes_;
  Json header_;
  uint64_t data_ = 0;  // where it begins
};
}  // namespace

void save_program(const Program& program, const std::string& path) { FileWriter(program).write(path); }

std::shared_ptr<const Program> load_program(const std::string& path) {
  const std::string name = "[" + file_name(path) + "] ";
  try {
    if (!platform::is_file(path)) throw Error(ErrorKind::value, "no such file: " + path);
    return FileReader(path).program();
  } catch (const Error& e) {
    std::string why = e.what();
    if (!e.cure.empty()) why.resize(why.size() - e.cure.size() - 2);  // it comes back with the new Error
    throw Error(e.kind, name + why, e.cure);
  }
}
}  // namespace dovetail
