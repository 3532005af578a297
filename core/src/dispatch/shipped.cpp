// The decompositions that the library brings: core/generated/decompositions.json, one op a line, parsed when it is needed.
#include <mutex>
#include <unordered_map>

#include "dispatch/execute.hpp"
#include "graph/text.hpp"

// The file as a part of the library.
extern "C" {
extern const char dovetail_decompositions_begin[], dovetail_decompositions_end[];
}
asm(".pushsection .rodata\n"
    ".global dovetail_decompositions_begin, dovetail_decompositions_end\n"
    ".hidden dovetail_decompositions_begin, dovetail_decompositions_end\n"
    "dovetail_decompositions_begin:\n"
    ".incbin \"" DOVETAIL_DECOMPOSITIONS "\"\n"
    "dovetail_decompositions_end:\n"
    ".popsection\n");

namespace dovetail {
namespace {
// {"patterns": {"f32.2;i": [0, 1]}, "programs": [...]}
struct OpDecompositions {
  std::unordered_map<std::string, std::vector<std::shared_ptr<const Program>>> by_pattern;
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

OpDecompositions parse(const Op& op) {
  OpDecompositions made;
  const std::string_view line = line_of(op.spec.name);
  if (line.empty()) return made;
  const Json document = parse_json(line);
  std::vector<std::shared_ptr<const Program>> programs;
  for (const Json& program : document.at("programs", "decompositions").items) programs.push_back(program_of(program));
  for (const auto& [pattern, which] : document.at("patterns", "decompositions").members)
    for (const Json& i : which.items) made.by_pattern[pattern].push_back(programs.at(size_t(i.i)));
  return made;
}
}  // namespace

std::span<const std::shared_ptr<const Program>> shipped_decompositions(const Op& op, const std::string& pattern) {
  static std::mutex mutex;
  static auto& parsed = *new std::unordered_map<const Op*, OpDecompositions>;
  const std::lock_guard lock(mutex);
  auto found = parsed.find(&op);
  if (found == parsed.end()) found = parsed.emplace(&op, parse(op)).first;
  const auto programs = found->second.by_pattern.find(pattern);
  if (programs == found->second.by_pattern.end()) return {};
  return programs->second;
}
}  // namespace dovetail
