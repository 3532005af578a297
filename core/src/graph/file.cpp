#include "graph/file.hpp"

#include <unordered_set>

#include "graph/content_hash.hpp"
#include "graph/safetensors.hpp"
#include "graph/text.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
using safetensors::Entry, safetensors::kAlignment;
constexpr const char* kFormat = "dovetail";

uint64_t aligned(uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// A dtype that safetensors cannot name is stored as bytes.
// Null where it has none, or only for tensors that fill their last byte.
const char* dtype_name(DType t) { return is_packed(t) ? nullptr : safetensors::dtype_name(t); }
std::string stored_dtype(DType t) {
  const char* name = dtype_name(t);
  return name ? name : "U8";
}
std::vector<int64_t> stored_shape(DType t, const std::vector<int64_t>& shape, uint64_t bytes) {
  return dtype_name(t) ? shape : std::vector<int64_t>{int64_t(bytes)};
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// ---- writing ----------------------------------------------------------------------------------------------------
class FileWriter {
 public:
  explicit FileWriter(const Program& program) {
    const Json text = to_json(program);
    metadata_ = Json::map({{"format", kFormat}, {"program", text.dump()}, {"sha256", to_hex(content_hash(text))}});
    for (const Program::Array& a : program.arrays) names_.insert(a.name);
    for (const Program::Array& a : program.arrays) add(a);
  }

  void write(const std::string& path) {
    try {
      const std::string header = safetensors::header_of(entries_, std::move(metadata_));
      data_.insert(data_.begin(), header);
      if (const std::string error = platform::replace_file(path, data_); !error.empty())
        throw Error(ErrorKind::runtime, "it cannot be written: " + error);
    } catch (const Error& e) {
      throw Error(e.kind, "[" + file_name(path) + "] " + e.what());
    }
  }

 private:
  void entry(std::string name, std::string dtype, std::vector<int64_t> shape, std::string_view data) {
    entries_.push_back({std::move(name), std::move(dtype), std::move(shape), offset_, offset_ + data.size()});
    offset_ += data.size();
    data_.push_back(data);
  }

  void add(const Program::Array& a) {
    static constexpr char zeros[kAlignment] = {};
    if (const uint64_t gap = aligned(offset_) - offset_) {  // safetensors allows no holes
      std::string name;
      do name = "pad" + std::to_string(n_pads_++);
      while (names_.contains(name));
      entry(name, "U8", {int64_t(gap)}, {zeros, gap});
    }
    const HostArray& x = a.elements;
    const uint64_t bytes = x.type().bytes();
    entry(a.name, stored_dtype(x.dtype), stored_shape(x.dtype, x.shape, bytes),
          {reinterpret_cast<const char*>(x.data), bytes});
  }

  Json metadata_;
  std::vector<Entry> entries_;
  std::unordered_set<std::string_view> names_;
  std::vector<std::string_view> data_;
  uint64_t offset_ = 0, n_pads_ = 0;
};

// ---- reading ----------------------------------------------------------------------------------------------------
HostArray array_of_program(const safetensors::File& file, const std::string& name, DType dtype,
                           std::vector<int64_t> shape) {
  const Entry* found = file.find(name);
  if (!found) throw Error(ErrorKind::value, "it has no tensor " + name + ", which its program needs");
  const uint64_t bytes = HostArray{dtype, shape, nullptr, nullptr}.type().bytes();
  if (found->dtype != stored_dtype(dtype) || found->shape != stored_shape(dtype, shape, bytes) ||
      found->end - found->begin != bytes)
    throw Error(ErrorKind::value, "tensor " + name + ": dtype, shape or size are not those of the program, " +
                                      info(dtype).name + " in " + std::to_string(bytes) + " bytes");
  return file.array(*found, dtype, std::move(shape));
}

std::shared_ptr<const Program> program_of_file(const safetensors::File& file) {
  const auto text = [&](const char* key) -> const std::string* {
    const Json* j = file.metadata() ? file.metadata()->find(key) : nullptr;
    return j && j->kind == Json::string ? &j->text : nullptr;
  };
  const std::string *format = text("format"), *program = text("program"), *hash = text("sha256");
  if (!format || *format != kFormat || !program || !hash)
    throw Error(ErrorKind::value, "not a dovetail file: a safetensors file without a program");
  const Json document = parse_json(*program);
  if (const std::string own = to_hex(content_hash(document)); own != *hash)
    throw Error(ErrorKind::value, "its program was changed: the sha256 is " + own + ", expected " + *hash);
  return program_of(document, [&file](const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return array_of_program(file, name, dtype, std::move(shape));
  });
}
}  // namespace

void save_program(const Program& program, const std::string& path) { FileWriter(program).write(path); }

std::shared_ptr<const Program> load_program(const std::string& path) {
  const std::string name = "[" + file_name(path) + "] ";
  try {
    return program_of_file(safetensors::File(path));
  } catch (const Error& e) {
    std::string why = e.what();
    if (!e.cure.empty()) why.resize(why.size() - e.cure.size() - 2);  // it comes back with the new Error
    throw Error(e.kind, name + why, e.cure);
  }
}
}  // namespace dovetail
