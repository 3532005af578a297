// The attributes of one call.
#pragma once
#include <span>
#include <string_view>

#include "types/dtype.hpp"
#include "types/op_spec.hpp"

namespace dovetail {
// Attributes in schema order, and what they point to.
struct Attrs {
  dvt_attr at[kMaxAttrs];              // of kind NONE where none was given; the value of such an entry is not set
  int64_t ints[3 * DVT_MAX_NDIM + 8];  // room for the i64s of one call; longer ones live with the caller
  int n_ints = 0;

  Attrs() {  // nothing else is cleared: a call makes one on its stack, also for an op without attributes
    for (dvt_attr& a : at) a.kind = DVT_A_NONE, a.count = 0;
  }
  Attrs(const Attrs& o) noexcept { *this = o; }  // vectors of what has one move the rest
  Attrs& operator=(const Attrs& o) noexcept;
  int64_t* room(int n);  // n more ints, or nullptr if they do not fit
  void set_ints(int i, std::span<const int64_t> values);

  bool given(int i) const { return at[i].kind != DVT_A_NONE; }
  int64_t i64(int i) const { return at[i].v.i; }
  bool boolean(int i) const { return at[i].v.i != 0; }
  double f64(int i) const { return at[i].v.f; }
  std::string_view str(int i) const { return {at[i].v.s, at[i].count}; }
  std::span<const int64_t> i64s(int i) const { return {at[i].v.is, at[i].count}; }
  const dvt_program* program(int i) const { return at[i].v.p; }
  DType dtype(int i) const { return given(i) ? dtype_of(at[i].v.dt).value_or(DType::none) : DType::none; }
};

// Equal kinds and values, strings and lists by what they hold.
bool same_value(const dvt_attr&, const dvt_attr&);
void set_default(Attrs&, int i, const ParamSpec&);
}  // namespace dovetail
