// The rules by name.
#include <algorithm>
#include <iterator>

#include "rules/rules.hpp"

namespace dovetail::rules {
#define SHAPE(name, elementwise) void shape_##name(Inference&);
#define DTYPE(name) void dtype_##name(DTypeQuery&);
#define VIEW(name) bool view_##name(Inference&, int64_t& offset);
#include "rules/rules.inc"
#undef SHAPE
#undef DTYPE
#undef VIEW

namespace {
struct NamedView {
  const char* name;
  View rule;
};

#define DTYPE(name)
#define VIEW(name)
#define SHAPE(name, elementwise) {#name, shape_##name, elementwise},
constexpr NamedShapeRule shape_rules[] = {
#include "rules/rules.inc"
};
#undef SHAPE
#undef DTYPE
#define SHAPE(name, elementwise)
#define DTYPE(name) {#name, dtype_##name},
constexpr NamedDTypeRule dtype_rules[] = {
#include "rules/rules.inc"
};
#undef DTYPE
#undef VIEW
#define DTYPE(name)
#define VIEW(name) {#name, view_##name},
constexpr NamedView views[] = {
#include "rules/rules.inc"
};
#undef SHAPE
#undef DTYPE
#undef VIEW

template <class Rules>
const auto& find(const Rules& rules, const std::string& name, const char* what) {
  const auto found =
      std::find_if(std::begin(rules), std::end(rules), [&](const auto& r) { return name == r.name; });
  if (found != std::end(rules)) return *found;
  std::string known;
  for (const auto& r : rules) known += (known.empty() ? "" : ", ") + std::string(r.name);
  throw Error(ErrorKind::value, std::string("there is no ") + what + " '" + name + "': expected one of " + known);
}
}  // namespace

const NamedShapeRule& shape_rule(const std::string& name) { return find(shape_rules, name, "shape rule"); }
const NamedDTypeRule& dtype_rule(const std::string& name) { return find(dtype_rules, name, "dtype rule"); }
View view(const std::string& shape_rule) { return find(views, shape_rule, "view").rule; }
}  // namespace dovetail::rules
