// The decompositions and forms that the library brings: core/generated/decompositions.json, one op a line and a
// line of forms, parsed when they are needed.
#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "dispatch/execute.hpp"
#include "dispatch/lower.hpp"
#include "graph/text.hpp"

// The file as a part of the library.
extern "C" {
extern const char dovetail_decompositions_begin[], dovetail_decompositions_end[];
}
#if defined(__ELF__)
#define BEGIN ".pushsection .rodata\n.hidden dovetail_decompositions_begin, dovetail_decompositions_end\n"
#define END ".popsection\n"
#else  // COFF, where what is not exported is hidden
#define BEGIN ".section .rdata,\"dr\"\n"
#define END ".text\n"
#endif
asm(BEGIN
    ".global dovetail_decompositions_begin, dovetail_decompositions_end\n"
    "dovetail_decompositions_begin:\n"
    ".incbin \"" DOVETAIL_DECOMPOSITIONS
    "\"\n"
    "dovetail_decompositions_end:\n" END);
#undef BEGIN
#undef END

namespace dovetail {
namespace {
constexpr char kAny[] = "*";  // as a dtype: that of the value operands

// {"any": ["f32", "f64"], "patterns": {"*.2;i": [0, 1]}, "programs": [...]}
struct OpDecompositions {
  std::vector<std::string> any;  // the dtypes for which kAny stands, where no pattern names the dtype itself
  std::unordered_map<std::string, std::vector<size_t>> by_pattern;
  std::vector<std::string_view> programs;  // texts: a program is parsed when a call needs it
  std::vector<std::unordered_map<int, std::shared_ptr<const Program>>> made;  // of each program, by dtype
};

std::string_view text() {
  return {dovetail_decompositions_begin, size_t(dovetail_decompositions_end - dovetail_decompositions_begin)};
}

// The line of an op, which begins with its name: "abs": {...},
std::string_view line_of(const std::string& op) {
  static const auto& lines = *[] {
    auto* made = new std::unordered_map<std::string_view, std::string_view>;
    for (std::string_view rest = text(); !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const size_t end = line.find("\":");
      if (!line.starts_with('"') || end == std::string_view::npos) continue;
      std::string_view value = line.substr(end + 2);
      if (value.ends_with(',')) value.remove_suffix(1);
      (*made)[line.substr(1, end - 1)] = value;
    }
    return made;
  }();
  const auto found = lines.find(op);
  return found == lines.end() ? std::string_view() : found->second;
}

// The objects of a list of objects, as texts.
std::vector<std::string_view> objects_of(std::string_view list) {
  std::vector<std::string_view> objects;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '"') {
      while (list[++i] != '"') i += list[i] == '\\';
    } else if (c == '{') {
      if (depth++ == 0) begin = i;
    } else if (c == '}' && --depth == 0) {
      objects.push_back(list.substr(begin, i + 1 - begin));
    }
  }
  return objects;
}

OpDecompositions parse(const Op& op) {
  constexpr std::string_view kPrograms = "\"programs\":[";  // the last member of a line
  OpDecompositions found;
  const std::string_view line = line_of(op.spec.name);
  const size_t programs = line.find(kPrograms);
  if (programs == std::string_view::npos) return found;
  const Json document = parse_json(std::string(line.substr(0, programs)) + std::string(kPrograms) + "]}");
  for (const Json& dtype : document.at("any", "decompositions").items) found.any.push_back(dtype.text);
  for (const auto& [pattern, which] : document.at("patterns", "decompositions").members)
    for (const Json& i : which.items) found.by_pattern[pattern].push_back(size_t(i.i));
  found.programs = objects_of(line.substr(programs + kPrograms.size()));
  found.made.resize(found.programs.size());
  return found;
}

Json with_dtype(Json j, const char* dtype) {
  for (Json& item : j.items) item = with_dtype(std::move(item), dtype);
  for (auto& [name, value] : j.members)
    if (name == "dtype" && value.kind == Json::string && value.text == kAny) value = Json(dtype);
    else value = with_dtype(std::move(value), dtype);
  return j;
}

// The forms for arrays of one dtype.
std::vector<Form> read_forms(DType dtype) {
  std::vector<Form> made;
  for (const Json& form : parse_json(line_of("forms")).items) {
    const auto program = [&](const char* side) {
      return program_of(with_dtype(form.at(side, "forms"), info(dtype).name));
    };
    std::vector<TensorType> types;
    for (const Json& sizes : form.at("shapes", "forms").items) {
      std::vector<int64_t> shape;
      for (const Json& n : sizes.items) shape.push_back(n.i);
      types.emplace_back().dtype = dtype;
      types.back().set_shape(shape);
    }
    std::vector<const TensorType*> in;
    for (const TensorType& t : types) in.push_back(&t);
    Form& to = made.emplace_back();
    to.written = std::move(*bind_program(program("written"), in.data(), nullptr));
    to.op = program("op");
    for (const Json& mark : form.at("marks", "forms").items) to.marks.push_back(mark.f);
  }
  return made;
}
}  // namespace

std::span<const Form> shipped_forms(DType dtype) {
  static std::mutex mutex;
  static auto& known = *new std::map<DType, std::vector<Form>>;
  if (!is_float(dtype) || info(dtype).bits() < 16) return {};
  const std::lock_guard lock(mutex);
  auto found = known.find(dtype);
  if (found == known.end()) found = known.emplace(dtype, read_forms(dtype)).first;
  return found->second;
}

std::vector<std::shared_ptr<const Program>> shipped_decompositions(const Op& op, const std::string& pattern,
                                                                   DType any) {
  static std::mutex mutex;
  static auto& parsed = *new std::unordered_map<const Op*, OpDecompositions>;
  const std::lock_guard lock(mutex);
  auto of = parsed.find(&op);
  if (of == parsed.end()) of = parsed.emplace(&op, parse(op)).first;
  OpDecompositions& known = of->second;
  const auto places = known.by_pattern.find(pattern);
  if (places == known.by_pattern.end()) return {};
  if (any != DType::none && std::ranges::find(known.any, info(any).brief) == known.any.end()) return {};
  std::vector<std::shared_ptr<const Program>> programs;
  for (const size_t place : places->second) {
    std::shared_ptr<const Program>& program = known.made.at(place)[int(any)];
    if (!program) {
      Json text = parse_json(known.programs.at(place));
      program = program_of(any == DType::none ? text : with_dtype(std::move(text), info(any).name));
    }
    programs.push_back(program);
  }
  return programs;
}
}  // namespace dovetail
