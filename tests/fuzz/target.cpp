#include "target.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dispatch/artefact.hpp"
#include "dispatch/control.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/packed.hpp"
#include "dispatch/replay.hpp"
#include "dispatch/run_program.hpp"
#include "graph/content_hash.hpp"
#include "graph/file.hpp"
#include "graph/safetensors.hpp"
#include "graph/text.hpp"

namespace fuzz {
using namespace dovetail;
namespace {
constexpr size_t kProgramsOfOneOp = 12;
constexpr size_t kCopies = 100;              // of each program of the folder, so that many cases are made of them
constexpr uint64_t kMostElements = 1 << 16;  // of the values of a program that is run
constexpr uint64_t kMostSteps = 1 << 18;     // of such a run, those of a while_loop's programs counted once
constexpr uint64_t kMostRounds = 16;         // of its while_loops: a mutated one may have no end

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::invalid_argument("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of decompositions that hold for several dtypes, the programs of float32.
std::string with_one_dtype(const std::string& text) {
  static constexpr std::string_view any = R"("dtype":"*")", one = R"("dtype":"float32")";
  std::string made;
  made.reserve(text.size() * 2);
  size_t from = 0;
  for (size_t at; (at = text.find(any, from)) != std::string::npos; from = at + any.size())
    made.append(text, from, at - from).append(one);
  return made.append(text, from);
}

// "f32.2,i64;..." as decomposition_pattern writes the operands; "*" is float32, as above.
std::vector<Seed::Input> inputs_of(const std::string& pattern) {
  std::vector<Seed::Input> made;
  std::stringstream operands(pattern.substr(0, pattern.find(';')));
  for (std::string one; std::getline(operands, one, ',');) {
    const std::string brief = one.substr(0, one.find('.'));
    const int rank = one.find('.') == std::string::npos ? -1 : std::atoi(one.c_str() + one.find('.') + 1);
    for (int t = 0; t < kDTypes; ++t)
      if (brief == dtype_table[t].brief || (brief == "*" && DType(t) == DType::f32))
        made.push_back({DType(t), rank});
  }
  return made;
}

void add_decompositions(const Json& of_op, std::vector<Seed>& seeds) {
  const auto& programs = of_op.at("programs", "an op").items;
  const auto& patterns = of_op.at("patterns", "an op").members;
  for (size_t k = 0; k < std::min(programs.size(), kProgramsOfOneOp); ++k) {
    const size_t i = k * programs.size() / std::min(programs.size(), kProgramsOfOneOp);
    Seed seed{programs[i], {}};
    for (const auto& [pattern, places] : patterns)
      for (const Json& place : places.items)
        if (size_t(place.i) == i) seed.inputs = inputs_of(pattern);
    seeds.push_back(std::move(seed));
  }
}

DType any_dtype(Rng& rng) {
  constexpr DType common[] = {DType::f32, DType::i64, DType::b8, DType::i32, DType::f16, DType::u32};
  return below(rng, 4) ? common[below(rng, std::size(common))] : DType(below(rng, kDTypes));
}

int64_t any_size(Rng& rng) {
  constexpr int64_t sizes[] = {0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 17, 64};
  return below(rng, 200) ? sizes[below(rng, std::size(sizes))] : int64_t{1} << below(rng, 62);
}

std::vector<TensorType> operands_of(const Program& p, const std::vector<Seed::Input>& known, Rng& rng) {
  std::vector<TensorType> made(p.inputs.size());
  const int64_t one = any_size(rng);
  for (size_t i = 0; i < made.size(); ++i) {
    std::vector<int64_t> shape = p.inputs[i].shape;
    made[i].dtype = p.inputs[i].dtype;
    if (made[i].dtype == DType::none) {
      made[i].dtype = i < known.size() ? known[i].dtype : any_dtype(rng);
      shape.assign(i < known.size() && known[i].rank >= 0 ? size_t(known[i].rank) : below(rng, 4), -1);
    }
    for (int64_t& n : shape)
      if (n < 0) n = below(rng, 2) ? one : any_size(rng);
    made[i].set_shape(shape);
  }
  return made;
}

// Numbers of a traced op's attributes.
Attrs any_attributes(Rng& rng) {
  Attrs attrs;
  int64_t list[6];
  for (int i = 0; i < kMaxAttrs; ++i) {
    dvt_attr& a = attrs.at[i];
    switch (below(rng, 4)) {
      case 0: a = {DVT_A_I64, 1, {.i = int64_t(below(rng, 5)) - 1}}; break;
      case 1: a = {DVT_A_F64, 1, {.f = double(below(rng, 7)) / 2 - 1}}; break;
      case 2:
        for (int64_t& n : list) n = int64_t(below(rng, 4));
        attrs.set_ints(i, {list, below(rng, 7)});
        break;
      default: break;
    }
  }
  return attrs;
}

Tensor filled(const TensorType& type, Device& device, Rng& rng) {
  const double value = double(below(rng, 9)) - 2;
  // Packed elements have no strides, hence no broadcast view: they are converted.
  const DType dtype = is_packed(type.dtype) ? DType::f32 : type.dtype;
  const Scalar scalar = cast_scalar(Scalar(DType::f64, &value), dtype);
  Tensor one = materialise(host_scalar(scalar), device);
  Tensor made = compact(broadcast_view(one, type.shape()));
  return dtype == type.dtype ? made : cast(made, type.dtype, device);
}

// For programs that are in no file.
HostArray zeros(const std::string& name, const Json&, DType dtype, std::vector<int64_t> shape) {
  static const std::vector<std::byte> memory(1 << 16);
  HostArray made{dtype, std::move(shape), memory.data(), nullptr};
  if (made.type().bytes() > memory.size()) throw Error(ErrorKind::value, "a large tensor " + name);
  return made;
}

// The text as the header of a file. Mostly with the hash that its program has, and with as many bytes as its
// tensors need, within reason.
std::shared_ptr<const Program> read_as_file(const std::string& text, const std::string& folder, Rng& rng) {
  Json header = parse_json(text);
  uint64_t size = 0;
  for (auto& [name, value] : header.members) {
    if (name == "__metadata__") {
      for (auto& [key, j] : value.members)
        if (key == "program" && j.kind == Json::object) j = Json(j.dump());
      const Json* program = value.find("program");
      if (program && program->kind == Json::string && below(rng, 20))
        for (auto& [key, j] : value.members)
          if (key == "sha256") j = Json(to_hex(content_hash(parse_json(program->text))));
    } else if (const Json* offsets = value.find("data_offsets")) {
      for (const Json& offset : offsets->items) size = std::max(size, uint64_t(std::max<int64_t>(offset.i, 0)));
    }
  }
  // The file of weights that some programs name: w of 4x6 floats.
  static const bool others = [&] {
    const std::string bytes(96, char(1));
    const std::string head = safetensors::header_of({{"w", "F32", {4, 6}, 0, 96}}, Json::map());
    std::ofstream(folder + "/w.safetensors", std::ios::binary) << head << bytes;
    return true;
  }();
  (void)others;
  const std::string path = folder + "/case.dvt", written = header.dump();
  uint64_t length = written.size();
  if (below(rng, 30) == 0) length = rng() >> below(rng, 64);
  size = std::min<uint64_t>(size, 1 << 16) + (below(rng, 30) ? 0 : below(rng, 9));
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length)
      << written << std::string(size, char(below(rng, 20) ? below(rng, 2) : 2));  // 2 is no bool
  file.close();
  auto program = load_program(path);
  if (below(rng, 10) == 0) verify_program_file(path);
  return program;
}

void write_file(const std::string& path, const std::string& head, const std::string& bytes = {}) {
  std::ofstream(path, std::ios::binary) << head << bytes;
}

// The header with the checksums of such packs, so that they are taken.
Json with_checksums(const Json& header, const std::string& bytes) {
  Json metadata = Json::map({{"format", "dovetail packs"}}), made = Json::map();
  for (const auto& [name, entry] : header.members) {
    if (name == "__metadata__") continue;
    made.members.emplace_back(name, entry);
    const Json* offsets = entry.find("data_offsets");
    if (!offsets || offsets->items.size() != 2) continue;
    const auto begin = std::min(uint64_t(std::max<int64_t>(offsets->items[0].i, 0)), uint64_t(bytes.size()));
    const auto end = std::clamp(uint64_t(std::max<int64_t>(offsets->items[1].i, 0)), begin, uint64_t(bytes.size()));
    char digits[17];
    const uint64_t sum = checksum(std::as_bytes(std::span(bytes).subspan(begin, end - begin)));
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
    metadata.members.emplace_back(name, digits);
  }
  made.members.emplace_back("__metadata__", std::move(metadata));
  return made;
}

// A folder of `dovetail build`: {"manifest": ..., "packs": the header of packs.safetensors}. Its program adds w to
// x.
void run_as_folder(const Json& document, const std::string& folder, Device& device, Rng& rng, Counts& counts) {
  static const std::vector<float> w(16, 1.F);
  static const std::string home = [&] {
    const std::string made = folder + "/built";
    std::filesystem::create_directories(made + "/code");
    ProgramBuilder b;
    const int x = b.input(Program::Input{-1, DType::f32, {-1, 4}, "x"}, std::vector<int64_t>{120, 4});
    const int array = b.array({DType::f32, {4, 4}, reinterpret_cast<const std::byte*>(w.data()), nullptr}, "w");
    const int sum = b.call(op("matmul"), {x, array}, op("matmul").defaults);
    save_program(*b.finish({sum}), made + "/program.dvt");
    write_file(made + "/code/" + std::string(64, 'a') + ".code", "no code");
    return made;
  }();
  uint64_t size = 0;
  if (const Json* packs = document.find("packs")) {
    for (const auto& [name, entry] : packs->members)
      if (const Json* offsets = entry.find("data_offsets"))
        for (const Json& offset : offsets->items) size = std::max(size, uint64_t(std::max<int64_t>(offset.i, 0)));
    const std::string bytes(std::min<uint64_t>(size, 1 << 16), char(below(rng, 3)));
    const std::string text = (below(rng, 4) ? with_checksums(*packs, bytes) : *packs).dump();
    uint64_t length = below(rng, 40) ? text.size() : rng() >> below(rng, 64);
    std::string head(reinterpret_cast<const char*>(&length), sizeof length);
    write_file(home + "/packs.safetensors", head + text, bytes);
  }
  if (const Json* manifest = document.find("manifest")) write_file(home + "/manifest.json", manifest->dump());
  const auto made = open_artefact(home, device, below(rng, 2));
  ++counts.read;
  std::vector<TensorType> types(1);
  types[0].dtype = DType::f32;
  types[0].set_shape(std::vector<int64_t>{int64_t(below(rng, 5)), 4});
  for (int round = 0; round < 3; ++round) made->run(&device, {filled(types[0], device, rng)});
  device.synchronize();
  ++counts.run;
}

bool is_small(const Binding& b) {
  uint64_t elements = 0;
  for (const TensorType& t : b.values)
    if ((elements += std::min(t.numel, kMostElements)) >= kMostElements) return false;
  return true;
}

void run_once(RunnableProgram& runnable, const std::vector<TensorType>& types, Device* device, Rng& rng,
              Counts& counts) {
  std::vector<const TensorType*> operands;
  for (const TensorType& t : types) operands.push_back(&t);
  const Attrs attrs = any_attributes(rng);
  auto binding = bind_program(runnable.shared(), operands.data(), nullptr);
  const bool is_whole = binding.has_value();  // needs no attributes
  if (!is_whole) binding = bind_program(runnable.shared(), operands.data(), &attrs);
  if (!binding) return;
  ++counts.bound;
  if (!device || !is_small(*binding) || binding->steps > kMostSteps) return;
  std::vector<Tensor> in;
  for (const TensorType& t : types) in.push_back(filled(t, *device, rng));
  const RoundLimit limit(kMostRounds);
  if (is_whole) {
    const std::vector<Tensor> kept = below(rng, 2) ? in : std::vector<Tensor>();  // otherwise they are given away
    runnable.run(device, std::move(in));
  } else {
    replay(*make_executable(std::move(*binding), *device), std::move(in));
  }
  device->synchronize();
  ++counts.run;
}
}  // namespace

std::vector<Seed> read_seeds(const std::string& decompositions, const std::string& folder) {
  std::vector<Seed> seeds;
  const Json document = parse_json(with_one_dtype(read_file(decompositions)));
  for (const auto& [name, of_op] : document.members)
    if (name != "forms") add_decompositions(of_op, seeds);  // which is no op
  if (!folder.empty())
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (file.path().extension() == ".json")
        seeds.insert(seeds.end(), kCopies, {parse_json(read_file(file.path().string())), {}});
  return seeds;
}

void run_program(const std::string& text, const std::vector<Seed::Input>& inputs, Device* device,
                 const std::string& folder, Rng& rng, Counts& counts) {
  std::shared_ptr<const Program> program;
  if (device && text.starts_with("{\"manifest\"")) {
    try {
      run_as_folder(parse_json(text), folder, *device, rng, counts);
    } catch (const Error&) {
    }
    return;
  }
  try {
    program = text.find("\"__metadata__\"") == std::string::npos ? program_of(parse_json(text), zeros)
                                                                 : read_as_file(text, folder, rng);
    ++counts.read;
    const std::string again = to_json(*program).dump();
    if (to_json(*program_of(parse_json(again), zeros)).dump() != again)
      throw std::logic_error("the program changes where it is read and written: " + again);
  } catch (const Error&) {
    return;
  }
  RunnableProgram runnable(program);
  try {
    runnable.outputs();
  } catch (const Error&) {
  }
  for (int round = 0; round < 4; ++round) {
    try {
      run_once(runnable, operands_of(*program, inputs, rng), device, rng, counts);
    } catch (const Error&) {
    }
  }
}
}  // namespace fuzz
