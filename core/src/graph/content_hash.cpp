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
    if (key == "tensors")
      for (auto& [name, tensor] : value.members)
        std::erase_if(tensor.members, [](const auto& m) { return m.first == "sha256"; });
    if (key == "decompositions")
      for (auto& [op, of_op] : value.members) remove_where(of_op);
  }
}
}  // namespace

Sha256::Digest content_hash(Json program) {
  remove_where(program);
  return sha256(program.dump());
}
}  // namespace dovetail
