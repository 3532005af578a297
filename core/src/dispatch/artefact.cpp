#include "dispatch/artefact.hpp"

#include <algorithm>
#include <array>

#include "device/environment.hpp"
#include "device/log.hpp"
#include "device/trusted_images.hpp"
#include "dispatch/packed.hpp"
#include "graph/file.hpp"
#include "graph/safetensors.hpp"
#include "platform/paths.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
constexpr uint64_t kMostManifest = 16 << 20;
constexpr int64_t kArtefactFormat = 1;
constexpr std::string_view kPackPrefix = "pack/", kCodeSuffix = ".code";

std::string base_name(const std::string& folder) {
  const auto path = platform::to_path(folder);
  return platform::from_path((path.has_filename() ? path : path.parent_path()).filename());
}

std::string digits_of(uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}
// Throws where the text is not what digits_of() makes.
uint64_t number_of(const std::string& digits, const std::string& what) {
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error(ErrorKind::value, what + " is no number of 16 lower-case digits");
  return std::stoull(digits, nullptr, 16);
}

// pack/<array>/<backend>/<call>/<layout>: the array's name may have slashes, the rest has none but in <call>.
std::string tensor_name(const std::string& array, const Device& device, const SavedPack& pack) {
  return std::string(kPackPrefix) + array + "/" + device.backend->name + "/" + pack.call + "/" +
         digits_of(pack.layout);
}

void expect_written(const std::string& path, const platform::FileError& error) {
  if (!error.empty()) throw write_error(path, error).within("[build] ");
}
}  // namespace

// ---- writing ----------------------------------------------------------------------------------------------------
PacksWritten write_packs(RunnableProgram& runnable, Device& device, const std::string& folder) {
  std::vector<safetensors::Entry> entries;
  std::vector<SavedPack> packs;
  Json metadata = Json::map({{"format", "dovetail packs"}});
  PacksWritten written;
  uint64_t at = 0;
  for (auto& [array, pack] : runnable.packs_on(device)) {
    const uint64_t gap = (safetensors::kAlignment - at % safetensors::kAlignment) % safetensors::kAlignment;
    if (gap) entries.push_back({"pad" + std::to_string(entries.size()), "U8", {int64_t(gap)}, at, at + gap});
    at += gap;
    const std::string name = tensor_name(array, device, pack);
    metadata.members.emplace_back(name, digits_of(pack.checksum));
    entries.push_back({name, "U8", {int64_t(pack.size)}, at, at + pack.size});
    at += pack.size;
    ++written.count, written.bytes += pack.size;
    packs.push_back(std::move(pack));
  }
  if (packs.empty()) return written;
  const std::string path = folder + "/" + kArtefactPacks;
  platform::FileDraft draft(path);
  draft.write(safetensors::header_of(entries, std::move(metadata)));
  size_t next = 0;
  for (const safetensors::Entry& e : entries) {
    static constexpr char zeros[safetensors::kAlignment] = {};
    if (!e.name.starts_with(kPackPrefix)) draft.write({zeros, e.end - e.begin});
    else draft.write({reinterpret_cast<const char*>(packs[next++].data), e.end - e.begin});
  }
  draft.commit();
  expect_written(path, draft.error());
  return written;
}

CodeWritten write_code(const std::string& folder) {
  CodeWritten written;
  for (const auto& [key, image] : recorded_images()) {
    const std::string path = folder + "/" + kArtefactCode + "/" + key + std::string(kCodeSuffix);
    const std::string_view parts[] = {image};
    expect_written(path, platform::replace_file(path, parts));
    ++written.count, written.bytes += image.size();
  }
  return written;
}

// ---- opening ----------------------------------------------------------------------------------------------------
namespace {
// What the artefact is for, and what its folder has.
struct Manifest {
  std::string backend;
  std::vector<std::vector<std::vector<int64_t>>> sizes;  // shapes of the inputs for which it was built
  bool has_packs = false;
  std::vector<std::pair<std::string, std::string>> code;  // names of files, and their SHA-256
  bool eager = false;                                     // narrow floats are rounded after every node
};

std::vector<int64_t> shape_of(const Json& j) {
  std::vector<int64_t> shape;
  for (const Json& n : j.as_list("a shape")) shape.push_back(n.as_integer("a size"));
  return shape;
}

bool is_code_name(std::string_view name) {
  return name.size() == 64 + kCodeSuffix.size() && name.ends_with(kCodeSuffix) &&
         name.substr(0, 64).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Errors name the file of the folder and a cure.
template <class F>
auto about(const char* file, const F& work) {
  try {
    return work();
  } catch (const Error& e) {
    const std::string why = std::string(file) + ": " + e.without_cure();
    throw Error(e.kind, why, e.cure.empty() ? "copy the folder again, or `dovetail build` it again" : e.cure);
  }
}

Manifest read_manifest(const std::string& path) {
  if (!platform::is_file(path))
    throw Error(ErrorKind::no_file, "no such file: " + path, "dovetail build makes such a folder");
  const platform::MappedFile file(path);
  if (!file.error().empty() || file.bytes().size() > kMostManifest)
    throw Error(ErrorKind::value, "it cannot be read: " + (file.error().empty() ? "it is too long" : file.error()));
  const Json j = parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  const char* const what = "it";
  if (const int64_t format = j.at("dovetail_artefact", what).as_integer("dovetail_artefact");
      format != kArtefactFormat)
    throw Error(ErrorKind::value,
                "it is of format " + std::to_string(format) + ", this dovetail reads format " +
                    std::to_string(kArtefactFormat),
                format > kArtefactFormat ? "pip install -U dovetail-runtime" : "`dovetail build` it again");
  Manifest made;
  made.backend = j.at("backend", what).as_string("backend");
  for (const Json& sizes : j.at("sizes", what).as_list("sizes")) {
    auto& shapes = made.sizes.emplace_back();
    for (const Json& shape : sizes.as_list("sizes")) shapes.push_back(shape_of(shape));
  }
  made.has_packs = j.at("packs", what).at("count", "packs").as_integer("count") > 0;
  for (const Json& item : j.at("code", what).as_list("code")) {
    const std::string& name = item.as_string("code");
    if (!is_code_name(name)) throw Error(ErrorKind::value, "code: a name that is no file of code");
    const std::string file = std::string(kArtefactCode) + "/" + name;
    made.code.emplace_back(name, j.at("sha256", what).at(file, "sha256").as_string("a file's sha256"));
  }
  if (const Json* numerics = j.find("numerics")) made.eager = numerics->as_string("numerics") == "eager";
  return made;
}

// By the array's name.
SavedPacks read_packs(const std::string& path, const Device& device) {
  const safetensors::File file(path);
  SavedPacks packs;
  for (const safetensors::Entry& e : file.entries()) {
    if (!e.name.starts_with(kPackPrefix)) continue;
    if (e.dtype != "U8") throw Error(ErrorKind::value, "tensor " + e.name + ": expected bytes");
    // From the right: <layout>, then the five parts of <call> and <backend>.
    constexpr size_t kParts = 2 + kPartsOfPackedCall;
    std::array<size_t, kParts> slash;
    size_t end = e.name.size();
    for (size_t& at : slash) {
      at = end ? e.name.rfind('/', end - 1) : std::string::npos;
      if (at == std::string::npos || at < kPackPrefix.size())
        throw Error(ErrorKind::value, "tensor " + e.name + ": expected pack/array/backend/call/layout");
      end = at;
    }
    const std::string backend = e.name.substr(slash[kParts - 1] + 1, slash[kParts - 2] - slash[kParts - 1] - 1);
    if (backend != device.backend->name) continue;
    const uint64_t layout = number_of(e.name.substr(slash[0] + 1), "tensor " + e.name + ": its layout");
    const Json* sum = file.metadata() ? file.metadata()->find(e.name) : nullptr;
    if (!sum) throw Error(ErrorKind::value, "tensor " + e.name + ": the metadata have no checksum of it");
    const HostArray bytes = file.array(e);
    packs[e.name.substr(kPackPrefix.size(), slash[kParts - 1] - kPackPrefix.size())].push_back(
        {.call = e.name.substr(slash[kParts - 2] + 1, slash[0] - slash[kParts - 2] - 1),
         .size = e.end - e.begin,
         .layout = layout,
         .data = bytes.data,
         .owner = bytes.owner,
         .checksum = number_of(sum->as_string("a checksum"), "tensor " + e.name + ": its checksum")});
  }
  return packs;
}

void trust(const std::string& folder, const Manifest& manifest) {
  const std::string code = folder + "/" + kArtefactCode;
  if (platform::is_writable_by_all(folder) || (!manifest.code.empty() && platform::is_writable_by_all(code)))
    throw Error(ErrorKind::value, "every user may write its folder, so its code is not run",
                "chmod o-w " + folder + " " + code);
  for (const auto& [name, hash] : manifest.code)
    trust_image(name.substr(0, name.size() - kCodeSuffix.size()), code + "/" + name, hash);
}

std::vector<TensorType> types_of_inputs(const Program& p, const std::vector<std::vector<int64_t>>& shapes) {
  if (shapes.size() != p.inputs.size())
    throw Error(ErrorKind::value, "sizes of " + std::to_string(shapes.size()) + " inputs: expected " +
                                      std::to_string(p.inputs.size()));
  std::vector<TensorType> types(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].size() > DVT_MAX_NDIM || std::ranges::any_of(shapes[i], [](int64_t n) { return n < 0; }))
      throw Error(ErrorKind::value, "sizes: expected at most 16 axes, with sizes of at least 0");
    types[i].dtype = p.inputs[i].dtype;
    types[i].set_shape(shapes[i]);
  }
  return types;
}

std::unique_ptr<RunnableProgram> opened(const std::string& folder, Device& device, bool trust_code) {
  const auto path = [&](const char* file) { return folder + "/" + file; };
  const Manifest manifest = about(kArtefactManifest, [&] { return read_manifest(path(kArtefactManifest)); });
  if (manifest.backend != device.backend->name)
    throw Error(ErrorKind::value, "it was built for " + manifest.backend + ", not for " + device.name,
                "dovetail build --device " + device.backend->name);
  if (trust_code) trust(folder, manifest);
  auto program = load_program(path(kArtefactProgram));
  auto made = std::make_unique<RunnableProgram>(
      std::move(program), manifest.eager ? RunnableProgram::Fuse::rounding_each : RunnableProgram::Fuse::yes);
  if (manifest.has_packs && packing)
    made->give_packs(about(kArtefactPacks, [&] { return read_packs(path(kArtefactPacks), device); }));
  for (const auto& shapes : manifest.sizes)
    made->prepare(device, about(kArtefactManifest, [&] { return types_of_inputs(made->program(), shapes); }));
  return made;
}
}  // namespace

std::unique_ptr<RunnableProgram> open_artefact(const std::string& path, Device& device, bool trust_code) {
  device.check_usable();
  if (!platform::is_folder(path)) {
    auto made = std::make_unique<RunnableProgram>(load_program(path));
    std::string missing;
    try {
      missing = made->missing(device);
    } catch (const Error& e) {  // no sizes were found: a run names what is missing
      if (e.kind != ErrorKind::value) throw;
    }
    if (!missing.empty()) throw Error(ErrorKind::not_implemented, "[" + base_name(path) + "] " + missing);
    return made;
  }
  try {
    return opened(path, device, trust_code);
  } catch (const Error& e) {
    throw e.within("[" + base_name(path) + "] ");
  }
}
}  // namespace dovetail
