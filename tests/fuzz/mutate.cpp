#include "mutate.hpp"

#include <cmath>
#include <iterator>

#include "graph/number.hpp"
#include "rules/op.hpp"

namespace fuzz {
using dovetail::Json;
namespace {
constexpr int64_t kIntegers[] = {0,
                                 1,
                                 2,
                                 -1,
                                 -2,
                                 3,
                                 4,
                                 7,
                                 8,
                                 15,
                                 16,
                                 17,
                                 31,
                                 32,
                                 33,
                                 63,
                                 64,
                                 255,
                                 256,
                                 127,
                                 1000,
                                 1 << 24,
                                 INT32_MAX,
                                 INT32_MIN,
                                 1LL << 32,
                                 1LL << 53,
                                 INT64_MAX,
                                 INT64_MIN,
                                 INT64_MAX - 1,
                                 1LL << 62};
constexpr double kReals[] = {0., -0., 1., 0.5, -1.5, 1e-310, 1e308, 9007199254740993., 0x1p63, -0x1p63, 1e19};
const char* const kWords[] = {"",
                              "inf",
                              "-inf",
                              "nan",
                              "size",
                              "attribute",
                              "real_attribute",
                              "float32",
                              "bool",
                              "int8",
                              "int64",
                              "uint64",
                              "complex64",
                              "bfloat16",
                              "float8_e5m2",
                              "number",
                              "dtype",
                              "tensor",
                              "n",
                              "program",
                              "none",
                              "tanh",
                              "equal",
                              "less",
                              "batch",
                              "w",
                              "..",
                              "../w.safetensors",
                              "w.safetensors",
                              "/etc/passwd",
                              "./w.safetensors",
                              "w.safetensors/"};
const char* const kMembers[] = {"dovetail",  "inputs", "numbers", "guards",   "nodes",          "outputs", "op",
                                "v",         "in",     "at",      "where",    "dtype",          "shape",   "name",
                                "n",         "number", "complex", "programs", "program",        "tensors", "tensor",
                                "signature", "out",    "axis",    "body",     "count",          "start",   "stop",
                                "step",      "sizes",  "file",    "sha256",   "decompositions", "patterns"};

template <class T, size_t N>
const T& any_of(const T (&list)[N], Rng& rng) {
  return list[below(rng, N)];
}

std::string word(Rng& rng) {
  static const std::vector<const dovetail::Op*> ops = dovetail::all_ops();
  switch (below(rng, 4)) {
    case 0: return any_of(dovetail::number_names, rng);
    case 1: return any_of(kWords, rng);
    default: return ops[below(rng, ops.size())]->spec.name;
  }
}

Json leaf(Rng& rng) {
  switch (below(rng, 10)) {
    case 0: return {};
    case 1: return Json(below(rng, 2) == 0);
    case 2: return Json(any_of(kReals, rng));
    case 3: return Json(~uint64_t{0} - below(rng, 2));
    case 4: return Json(word(rng));
    case 5: return below(rng, 2) ? Json::list() : Json::map();
    default: return Json(any_of(kIntegers, rng));
  }
}

void collect(Json& j, std::vector<Json*>& found) {
  found.push_back(&j);
  for (Json& item : j.items) collect(item, found);
  for (auto& [name, value] : j.members) collect(value, found);
}

Json part_of(const Json& document, Rng& rng) {
  Json copy = document;
  const auto found = places(copy);
  return *found[below(rng, found.size())];
}

void change_list(Json& list, const Json& other, Rng& rng) {
  const size_t at = below(rng, list.items.size() + 1), from = below(rng, list.items.size());
  const auto place = list.items.begin() + std::ptrdiff_t(at);
  switch (below(rng, 7)) {
    case 0: list.items.insert(place, leaf(rng)); break;
    case 1:
      if (!list.items.empty()) list.items.insert(place, Json(list.items[from]));
      break;
    case 2:
      if (!list.items.empty()) list.items.erase(list.items.begin() + std::ptrdiff_t(from));
      break;
    case 3:
      if (at < list.items.size()) std::swap(list.items[at], list.items[from]);
      break;
    case 4: list.items.resize(at); break;
    case 5: list.items.insert(place, part_of(other, rng)); break;
    case 6:
      if (list.items.empty() || list.items.size() > 40) break;
      for (size_t n = below(rng, 60); n-- > 0;) list.items.push_back(list.items[from]);
  }
}

void change_object(Json& object, const Json& other, Rng& rng) {
  const size_t at = below(rng, object.members.size());
  const bool empty = object.members.empty();
  switch (below(rng, 5)) {
    case 0:
      if (!empty) object.members.erase(object.members.begin() + std::ptrdiff_t(at));
      break;
    case 1:
      if (!empty) object.members[at].first = any_of(kMembers, rng);
      break;
    case 2: object.members.emplace_back(any_of(kMembers, rng), leaf(rng)); break;
    case 3: object.members.emplace_back(any_of(kMembers, rng), part_of(other, rng)); break;
    case 4:
      if (!empty) object.members[at].second = part_of(object, rng);
  }
}

void change(Json& j, const Json& document, const Json& other, Rng& rng) {
  if (below(rng, 8) == 0) return void(j = below(rng, 3) ? part_of(document, rng) : part_of(other, rng));
  if (below(rng, 40) == 0) {
    for (size_t n = below(rng, 80); n-- > 0;) {
      Json deeper = below(rng, 2) ? Json::list({j}) : Json::map({{any_of(kMembers, rng), j}});
      j = std::move(deeper);
    }
    return;
  }
  switch (j.kind) {
    case Json::array: return change_list(j, other, rng);
    case Json::object: return change_object(j, other, rng);
    case Json::integer:
      if (below(rng, 2)) return void(j.i = int64_t(uint64_t(j.i) + below(rng, 5) - 2));
      break;
    case Json::string:
      if (below(rng, 4)) return void(j.text = word(rng));
      break;
    default: break;
  }
  j = leaf(rng);
}
}  // namespace

std::vector<Json*> places(Json& document) {
  std::vector<Json*> found;
  collect(document, found);
  return found;
}

void mutate(Json& document, const Json& other, Rng& rng) {
  for (size_t n = 1 + below(rng, 6) * below(rng, 2); n-- > 0;) {
    const auto found = places(document);
    const Json before = document;
    change(*found[below(rng, found.size())], before, other, rng);
  }
}

void mutate_text(std::string& text, Rng& rng) {
  constexpr std::string_view kBytes = "{}[]\",:0123456789.eE+-\\u nulltruefalse\0\x80\xff";
  for (size_t n = 1 + below(rng, 4); n-- > 0 && !text.empty();) {
    const size_t at = below(rng, text.size());
    switch (below(rng, 5)) {
      case 0: text[at] = kBytes[below(rng, kBytes.size())]; break;
      case 1: text.insert(at, 1, kBytes[below(rng, kBytes.size())]); break;
      case 2: text.erase(at, 1 + below(rng, 9)); break;
      case 3: text.resize(at); break;
      case 4: text.insert(at, text.substr(at, below(rng, 200))); break;
    }
  }
}
}  // namespace fuzz
