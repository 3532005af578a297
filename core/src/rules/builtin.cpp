// The schema's ops: constants, of which builtin_ops() makes OpSpecs. Written as OpSpecs they would be code that
// takes minutes to compile with the sanitizers.
#include <initializer_list>
#include <vector>

#include "rules/op.hpp"

namespace dovetail {
namespace {
struct DefaultRow {
  AttrDefault::Kind kind = AttrDefault::required;
  int64_t i = 0;
  double f = 0;
  const char* s = "";
  std::initializer_list<int64_t> is{};
};

struct ParamRow {
  const char* name;
  ParamKind kind;
  bool optional = false, variadic = false, keyword_only = false;
  DefaultRow fallback{};
  uint32_t since = 1;
};

struct OpRow {
  const char* name;
  uint32_t version;
  const char *space, *shape, *dtype;
  std::initializer_list<ParamRow> params;
  uint32_t n_out, flags;
  float tol;
  const char* doc;
};

constexpr OpRow rows[] = {
#include "ops.inc"
};

ParamSpec param_of(const ParamRow& p) {
  const DefaultRow& d = p.fallback;
  return {p.name, p.kind, p.optional, p.variadic, p.keyword_only, {d.kind, d.i, d.f, d.s, d.is}, p.since};
}

OpSpec op_of(const OpRow& o) {
  OpSpec op{o.name, o.version, o.space, o.shape, o.dtype, {}, o.n_out, o.flags, o.tol, o.doc};
  for (const ParamRow& p : o.params) op.params.push_back(param_of(p));
  return op;
}
}  // namespace

std::span<const OpSpec> builtin_ops() {
  static const std::vector<OpSpec> ops = [] {
    std::vector<OpSpec> made;
    for (const OpRow& row : rows) made.push_back(op_of(row));
    return made;
  }();
  return ops;
}
}  // namespace dovetail
