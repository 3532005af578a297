#include "types/attributes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "error.hpp"

namespace dovetail {
Attrs& Attrs::operator=(const Attrs& o) noexcept {
  std::copy(std::begin(o.at), std::end(o.at), at);
  std::copy(o.ints, o.ints + o.n_ints, ints);
  n_ints = o.n_ints;
  for (dvt_attr& a : at)
    if (a.kind == DVT_A_I64S && a.v.is >= o.ints && a.v.is < o.ints + std::size(o.ints))
      a.v.is = ints + (a.v.is - o.ints);
  return *this;
}

int64_t* Attrs::room(int n) {
  if (n_ints + n > int(std::size(ints))) return nullptr;
  return ints + std::exchange(n_ints, n_ints + n);
}

void Attrs::set_ints(int i, std::span<const int64_t> values) {
  int64_t* to = room(int(values.size()));
  if (!to)
    throw Error(ErrorKind::value,
                "attributes with more than " + std::to_string(std::size(ints)) + " integers in all");
  std::copy(values.begin(), values.end(), to);
  at[i] = {DVT_A_I64S, uint32_t(values.size()), {.is = to}};
}

bool same_value(const dvt_attr& a, const dvt_attr& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case DVT_A_NONE: return true;
    case DVT_A_STR: return std::string_view(a.v.s, a.count) == std::string_view(b.v.s, b.count);
    case DVT_A_I64S: return std::ranges::equal(std::span(a.v.is, a.count), std::span(b.v.is, b.count));
    case DVT_A_F64S: return std::ranges::equal(std::span(a.v.fs, a.count), std::span(b.v.fs, b.count));
    case DVT_A_DTYPE: return a.v.dt == b.v.dt;
    default: return a.v.raw == b.v.raw;
  }
}

void set_default(Attrs& attrs, int i, const ParamSpec& p) {
  const AttrDefault& d = p.fallback;
  dvt_attr& a = attrs.at[i];
  switch (d.kind) {
    case AttrDefault::required:
    case AttrDefault::none: a = {DVT_A_NONE, 0, {.raw = 0}}; break;
    case AttrDefault::i64:
      if (p.kind == ParamKind::i64s) attrs.set_ints(i, {&d.i, 1});
      else if (p.kind == ParamKind::f64) a = {DVT_A_F64, 1, {.f = double(d.i)}};
      else a = {DVT_A_I64, 1, {.i = d.i}};
      break;
    case AttrDefault::f64: a = {DVT_A_F64, 1, {.f = d.f}}; break;
    case AttrDefault::boolean: a = {DVT_A_BOOL, 1, {.i = d.i}}; break;
    case AttrDefault::str: a = {DVT_A_STR, uint32_t(d.s.size()), {.s = d.s.c_str()}}; break;
    case AttrDefault::i64s: attrs.set_ints(i, d.is); break;
  }
}
}  // namespace dovetail
