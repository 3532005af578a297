// The schema's ops: a file of its own, as it takes long to compile.
#include "rules/op.hpp"

namespace dovetail {
std::span<const OpSpec> builtin_ops() {
  static const OpSpec ops[] = {
#include "ops.inc"
  };
  return ops;
}
}  // namespace dovetail
