#include "dispatch/named_attrs.hpp"

#include "text.hpp"

namespace dovetail {
namespace {
const ParamSpec& param_of(const Op& op, int position) {
  for (const ParamSpec& p : op.spec.params)
    if (!is_operand(p.kind) && position-- == 0) return p;
  throw Error(ErrorKind::type,
              "[" + op.spec.name + "] too many attributes: expected at most " + std::to_string(op.n_attr));
}

const char* name_of(uint32_t kind) {
  static constexpr const char* names[] = {"None",     "an integer", "a float", "a bool",
                                          "a string", "integers",   "a dtype", "an unsigned integer",
                                          "floats",   "a program"};
  return kind < std::size(names) ? names[kind] : "a value of an unknown kind";
}

bool is_number(const dvt_attr& a) {
  return a.kind == DVT_A_BOOL || a.kind == DVT_A_I64 || a.kind == DVT_A_U64 || a.kind == DVT_A_F64 ||
         (a.kind == DVT_A_F64S && a.count == 2);
}
}  // namespace

uint32_t attr_kind(ParamKind kind) {
  switch (kind) {
    case ParamKind::i64: return DVT_A_I64;
    case ParamKind::f64: return DVT_A_F64;
    case ParamKind::boolean: return DVT_A_BOOL;
    case ParamKind::str: return DVT_A_STR;
    case ParamKind::i64s: return DVT_A_I64S;
    case ParamKind::dtype: return DVT_A_DTYPE;
    case ParamKind::program: return DVT_A_PROGRAM;
    default: return DVT_A_NONE;
  }
}

int attr_position(const Op& op, std::string_view name) {
  int i = 0;
  std::vector<std::string> known;
  for (const ParamSpec& p : op.spec.params) {
    if (is_operand(p.kind)) continue;
    if (p.name == name) return i;
    known.push_back(p.name);
    ++i;
  }
  throw Error(ErrorKind::type, "[" + op.spec.name + "] has no attribute '" + std::string(name) + "'" +
                                   did_you_mean(std::string(name), known));
}

void set_attr(const Op& op, Attrs& attrs, std::string_view name, const dvt_attr& value) {
  set_attr(op, attrs, attr_position(op, name), value);
}

void set_attr(const Op& op, Attrs& attrs, int i, const dvt_attr& a) {
  const ParamSpec& p = param_of(op, i);
  const uint32_t wants = attr_kind(p.kind);
  dvt_attr& to = attrs.at[i];
  const auto refuse = [&](const std::string& got) {
    throw Error(ErrorKind::type, "[" + op.spec.name + "] " + p.name + ": expected " +
                                     (wants == DVT_A_NONE ? "a number" : name_of(wants)) + ", got " + got);
  };
  if (a.kind == DVT_A_NONE) {
    const bool has_default = p.fallback.kind != AttrDefault::required;
    if (p.fallback.kind != AttrDefault::none && !(p.kind == ParamKind::dtype && has_default) && p.name != "axis")
      refuse("None");
    to = {DVT_A_NONE, 0, {.raw = 0}};
    return;
  }
  if ((a.kind == DVT_A_STR || a.kind == DVT_A_I64S || a.kind == DVT_A_F64S) && a.count && !a.v.raw)
    refuse(std::string(name_of(a.kind)) + " at NULL");
  if (p.kind == ParamKind::i64s && (a.kind == DVT_A_I64S || a.kind == DVT_A_I64)) {
    if (a.kind == DVT_A_I64S && a.count > 2 * DVT_MAX_NDIM)
      throw Error(ErrorKind::value, "[" + op.spec.name + "] " + p.name + ": " + std::to_string(a.count) +
                                        " values: expected at most " + std::to_string(DVT_MAX_NDIM) + " axes");
    attrs.set_ints(i, a.kind == DVT_A_I64S ? std::span<const int64_t>(a.v.is, a.count) : std::span(&a.v.i, 1));
  } else if (p.kind == ParamKind::f64 && a.kind == DVT_A_I64) {
    to = {DVT_A_F64, 1, {.f = double(a.v.i)}};
  } else if (p.kind == ParamKind::scalar ? is_number(a) : a.kind == wants) {
    to = a;
    if (p.kind == ParamKind::dtype && !dtype_of(a.v.dt)) refuse("one that Dovetail has not");
    if (a.kind == DVT_A_BOOL) to.v.i = a.v.i != 0;
  } else {
    refuse(name_of(a.kind));
  }
}
}  // namespace dovetail
