#include "graph/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <unordered_set>

#include "graph/content_hash.hpp"
#include "graph/external.hpp"
#include "graph/safetensors.hpp"
#include "graph/text.hpp"
#include "platform/paths.hpp"
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

std::string file_name(const std::string& path) { return platform::from_path(platform::to_path(path).filename()); }

std::string_view text_of(const HostArray& x) {
  return {reinterpret_cast<const char*>(x.data), size_t(x.type().bytes())};
}

// ---- writing ----------------------------------------------------------------------------------------------------
// The tensors of files that hold weights already.
class Elsewhere {
 public:
  Elsewhere(const std::string& path, const std::vector<std::string>& weights) {
    for (const std::string& file : weights) {
      if (const std::string why = misplaced(path, file); !why.empty())
        throw Error(ErrorKind::value, "weights " + Json(file).dump() + ": " + why);
      files_.emplace_back(file, safetensors::File(folder_of(path) + file));
    }
    for (const auto& [name, file] : files_)
      for (const Entry& e : file.entries())
        known_.emplace(std::pair(e.end - e.begin, e.dtype), At{name, &file, &e});
  }

  // {"file": ..., "tensor": ...} of one with these elements; empty where there is none.
  Json find(const HostArray& x) const {
    const std::string_view elements = text_of(x);
    const char* dtype = dtype_name(x.dtype);
    if (!dtype || elements.empty()) return {};
    const auto [begin, end] = known_.equal_range(std::pair(uint64_t(elements.size()), std::string(dtype)));
    const auto found = std::find_if(begin, end, [&](const auto& known) {
      const At& at = known.second;
      return at.entry->shape == x.shape && text_of(at.file->array(*at.entry)) == elements;
    });
    if (found == end) return {};
    return Json::map({{"file", found->second.name}, {"tensor", found->second.entry->name}});
  }

 private:
  struct At {
    std::string name;
    const safetensors::File* file;
    const Entry* entry;
  };
  std::deque<std::pair<std::string, safetensors::File>> files_;
  std::multimap<std::pair<uint64_t, std::string>, At> known_;  // by bytes and dtype
};

class FileWriter {
 public:
  FileWriter(const Program& program, const Elsewhere& elsewhere, const Program::Decompositions* decompositions) {
    Json text = to_json(program, decompositions);
    for (const Program::Array& a : program.arrays) names_.insert(a.name);
    for (auto& [member, tensors] : text.members)
      if (member == "tensors")
        for (size_t i = 0; i < program.arrays.size(); ++i)
          add(program.arrays[i], elsewhere, tensors.members[i].second);
    metadata_ = Json::map({{"format", kFormat}, {"program", text.dump()}, {"sha256", to_hex(content_hash(text))}});
  }

  void write(const std::string& path) {
    const std::string header = safetensors::header_of(entries_, std::move(metadata_));
    data_.insert(data_.begin(), header);
    if (const auto error = platform::replace_file(path, data_); !error.empty()) throw write_error(path, error);
  }

 private:
  void entry(std::string name, std::string dtype, std::vector<int64_t> shape, std::string_view data) {
    entries_.push_back({std::move(name), std::move(dtype), std::move(shape), offset_, offset_ + data.size()});
    offset_ += data.size();
    data_.push_back(data);
  }

  // `declared`: what the program's text says of it.
  void add(const Program::Array& a, const Elsewhere& elsewhere, Json& declared) {
    const HostArray& x = a.elements;
    const std::string_view elements = text_of(x);
    Json place = elsewhere.find(x);
    for (auto& member : place.members) declared.members.push_back(std::move(member));
    declared.members.emplace_back("sha256", to_hex(sha256(elements)));
    if (!place.members.empty()) return;
    static constexpr char zeros[kAlignment] = {};
    if (const uint64_t gap = aligned(offset_) - offset_) {  // safetensors allows no holes
      std::string name;
      do name = "pad" + std::to_string(n_pads_++);
      while (names_.contains(name));
      entry(name, "U8", {int64_t(gap)}, {zeros, gap});
    }
    entry(a.name, stored_dtype(x.dtype), stored_shape(x.dtype, x.shape, elements.size()), elements);
  }

  Json metadata_;
  std::vector<Entry> entries_;
  std::unordered_set<std::string_view> names_;
  std::vector<std::string_view> data_;
  uint64_t offset_ = 0, n_pads_ = 0;
};

// ---- reading ----------------------------------------------------------------------------------------------------
// The tensors of a program's file, and of those that it names.
class TensorReader {
 public:
  TensorReader(const safetensors::File& file, std::string path) : file_(file), path_(std::move(path)) {}

  HostArray array(const std::string& name, const Json& declared, DType dtype, std::vector<int64_t> shape) {
    if (const Json* hash = declared.find("sha256")) expect_hash(name, hash->as_string("a tensor's sha256"));
    const Json *file = declared.find("file"), *tensor = declared.find("tensor");
    if (!file && !tensor) return array_of(file_, name, dtype, std::move(shape));
    if (!file || !tensor) throw Error(ErrorKind::value, "tensor " + name + ": expected both a file and a tensor");
    const std::string& there = file->as_string("a tensor's file");
    try {
      return array_of(opened(there), tensor->as_string("a tensor's tensor"), dtype, std::move(shape));
    } catch (const Error& e) {
      throw Error(ErrorKind::value, "tensor " + name + " in " + Json(there).dump() + ": " + e.without_cure(),
                  e.cure);
    }
  }

 private:
  static void expect_hash(const std::string& name, const std::string& hash) {
    const bool ok = hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!ok) throw Error(ErrorKind::value, "tensor " + name + ": its sha256 is no number of 64 lower-case digits");
  }

  const safetensors::File& opened(const std::string& name) {
    const auto known = others_.find(name);
    if (known != others_.end()) return known->second;
    if (others_.size() == kMostFiles)
      throw Error(ErrorKind::value, "more than " + std::to_string(kMostFiles) + " files of weights");
    return others_.emplace(name, safetensors::File(external_file(path_, name))).first->second;
  }

  static HostArray array_of(const safetensors::File& file, const std::string& name, DType dtype,
                            std::vector<int64_t> shape) {
    const Entry* found = file.find(name);
    if (!found) throw Error(ErrorKind::value, "it has no tensor " + name + ", which its program needs");
    const uint64_t bytes = HostArray{dtype, shape, nullptr, nullptr}.type().bytes();
    if (found->dtype != stored_dtype(dtype) || found->shape != stored_shape(dtype, shape, bytes) ||
        found->end - found->begin != bytes)
      throw Error(ErrorKind::value, "tensor " + name + ": dtype, shape or size are not those of the program, " +
                                        info(dtype).name + " in " + std::to_string(bytes) + " bytes");
    HostArray made = file.array(*found, dtype, std::move(shape));
    if (dtype == DType::b8) expect_bools(name, made);
    return made;
  }

  // Kernels may add bools, or use them as indices: a byte of 2 would be no truth value to them.
  static void expect_bools(const std::string& name, const HostArray& x) {
    const std::string_view bytes = text_of(x);
    unsigned char bits = 0;
    for (const char b : bytes) bits |= static_cast<unsigned char>(b);
    if (bits <= 1) return;
    const size_t at = size_t(std::ranges::find_if(bytes, [](char b) { return b & ~1; }) - bytes.begin());
    throw Error(ErrorKind::value,
                "tensor " + name + " of bool has the byte " +
                    std::to_string(static_cast<unsigned char>(bytes[at])) + " at " + std::to_string(at) +
                    ": expected 0 or 1",
                "save it anew from an array of bool");
  }

  static constexpr size_t kMostFiles = 1024;
  const safetensors::File& file_;
  const std::string path_;
  std::map<std::string, safetensors::File> others_;  // by name
};

Json document_of(const safetensors::File& file) {
  const auto text = [&](const char* key) -> const std::string* {
    const Json* j = file.metadata() ? file.metadata()->find(key) : nullptr;
    return j && j->kind == Json::string ? &j->text : nullptr;
  };
  const std::string *format = text("format"), *program = text("program"), *hash = text("sha256");
  if (!format || *format != kFormat || !program || !hash)
    throw Error(ErrorKind::value, "not a dovetail file: a safetensors file without a program");
  Json document = parse_json(*program);
  if (const std::string own = to_hex(content_hash(document)); own != *hash)
    throw Error(ErrorKind::value, "its program was changed: the sha256 is " + own + ", expected " + *hash);
  return document;
}

// Errors name the file.
template <class F>
auto about(const std::string& path, const F& work) {
  try {
    return work();
  } catch (const Error& e) {
    throw e.within("[" + file_name(path) + "] ");
  }
}

std::shared_ptr<const Program> opened(const std::string& path, const ReadTensor* also = nullptr) {
  const safetensors::File file(path);
  TensorReader tensors(file, path);
  return program_of(document_of(file),
                    [&](const std::string& name, const Json& declared, DType dtype, std::vector<int64_t> shape) {
                      if (also) (*also)(name, declared, dtype, shape);
                      return tensors.array(name, declared, dtype, std::move(shape));
                    });
}
}  // namespace

Error write_error(const std::string& path, const platform::FileError& error) {
  const std::string why = "it cannot be written: " + error.text + ": " + path;
  switch (error.number) {
    case ENOENT:
    case ENOTDIR:
      return {error.number == ENOENT ? ErrorKind::no_file : ErrorKind::file, why, "make its folder first"};
    case EACCES:
    case EPERM: return {ErrorKind::no_permission, why, "choose a folder that you may write to"};
    case EISDIR: return {ErrorKind::is_folder, why, "name a file"};
    case ENOSPC: return {ErrorKind::file, why, "free some space"};
    default: return {ErrorKind::file, why};
  }
}

void save_program(const Program& program, const std::string& path, const SaveOptions& options) {
  about(path, [&] { FileWriter(program, Elsewhere(path, options.weights), options.decompositions).write(path); });
}

std::shared_ptr<const Program> load_program(const std::string& path) {
  return about(path, [&] { return opened(path); });
}

VerifiedFile verify_program_file(const std::string& path) {
  return about(path, [&] {
    std::map<std::string, std::string> hashes;
    const ReadTensor note = [&](const std::string& name, const Json& declared, DType, std::vector<int64_t>) {
      if (const Json* hash = declared.find("sha256"); hash && hash->kind == Json::string) hashes[name] = hash->text;
      return HostArray();
    };
    VerifiedFile found;
    const std::shared_ptr<const Program> program = opened(path, &note);
    for (const Program::Array& a : program->arrays) {
      const auto hash = hashes.find(a.name);
      if (hash == hashes.end()) {
        found.without_hash.push_back(a.name);
        continue;
      }
      const std::string_view elements = text_of(a.elements);
      ++found.tensors, found.bytes += elements.size();
      if (to_hex(sha256(elements)) != hash->second) found.wrong.push_back(a.name);
    }
    return found;
  });
}
}  // namespace dovetail
