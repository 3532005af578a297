#include "graph/content_hash.hpp"

#include <algorithm>

namespace dovetail {
namespace {
void remove_where(Json& program) {
  for (auto& [key, value] : program.members) {
    if (key == "nodes")
      for (Json& node : value.items) std::erase_if(node.members, [](const auto& m) { return m.first == "where"; });
    if (key == "guards")
      for (Json& guard : value.items)
        if (guard.items.size() > 4) guard.items.resize(4);
    if (key == "programs")
      for (Json& inner : value.items) remove_where(inner);
  }
}
}  // namespace

Sha256::Digest content_hash(Json program) {
  remove_where(program);
  return sha256(program.dump());
}
}  // namespace dovetail
