#include "graph/content_hash.hpp"

#include <algorithm>

namespace dovetail {
namespace {
Json without_where(const Json& program) {
  Json copy = program;
  for (auto& [key, value] : copy.members) {
    if (key == "nodes")
      for (Json& node : value.items) std::erase_if(node.members, [](const auto& m) { return m.first == "where"; });
    if (key == "guards")
      for (Json& guard : value.items)
        if (guard.items.size() > 4) guard.items.resize(4);
    if (key == "programs")
      for (Json& inner : value.items) inner = without_where(inner);
  }
  return copy;
}
}  // namespace

Sha256::Digest content_hash(const Json& program) { return sha256(without_where(program).dump()); }
}  // namespace dovetail
