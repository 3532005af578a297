// Rules of ops that make their result from attributes: from_shape, iota, linspace, arange, eye.
#include <cmath>

#include "rules/rules.hpp"

namespace dovetail::rules {
void shape_from_shape(Inference& inv) {
  const int a = attr(inv, "shape");
  if (inv.attrs.at[a].kind == DVT_A_I64) ints(inv, a);
  if (inv.attrs.at[a].kind != DVT_A_I64S) inv.fail(ErrorKind::type, "shape: expected an int or a sequence of ints");
  inv.work = inv.output(0, inv.attrs.i64s(a)).numel;
}

static void line(Inference& inv, int64_t n) { inv.work = inv.output(0, {&n, 1}).numel; }

void shape_iota(Inference& inv) { line(inv, integer(inv, attr(inv, "size"), 0)); }
void shape_linspace(Inference& inv) { line(inv, integer(inv, attr(inv, "num"), 0)); }

// ---- arange -------------------------------------------------------------------------------------

static bool is_int(const dvt_attr& a) { return a.kind == DVT_A_I64 || a.kind == DVT_A_U64; }

static __int128 exact(const dvt_attr& a) {
  return a.kind == DVT_A_U64 ? __int128{static_cast<uint64_t>(a.v.raw)} : __int128{a.v.i};
}

static double real(const Inference& inv, const dvt_attr& a, const char* name) {
  if (is_int(a)) return double(exact(a));
  if (a.kind != DVT_A_F64) inv.fail(ErrorKind::type, std::string(name) + ": expected an int or a float");
  if (!std::isfinite(a.v.f))
    inv.fail(std::string(name) + ": expected a finite number, got " + std::to_string(a.v.f));
  return a.v.f;
}

void shape_arange(Inference& inv) {
  dvt_attr &start = inv.attrs.at[attr(inv, "start")], &stop = inv.attrs.at[attr(inv, "stop")],
           &step = inv.attrs.at[attr(inv, "step")];
  if (stop.kind == DVT_A_NONE) stop = start, start = {DVT_A_I64, 1, {.i = 0}};
  if (step.kind == DVT_A_NONE) step = {DVT_A_I64, 1, {.i = 1}};
  const double from = real(inv, start, "start"), to = real(inv, stop, "stop"), by = real(inv, step, "step");
  if (by == 0) inv.fail("step: expected a number other than 0");
  constexpr double limit = 9e18;  // below 2^63; TensorType::set_shape has a smaller limit
  double n;
  if (is_int(start) && is_int(stop) && is_int(step)) {
    const __int128 d = exact(stop) - exact(start), s = exact(step);
    const __int128 count = (d > 0) == (s > 0) && d != 0 ? (d + s - (s > 0 ? 1 : -1)) / s : 0;
    if (count <= __int128{1} << 60) return line(inv, int64_t(count));
    n = double(count);
  } else {
    n = std::ceil((to - from) / by);
  }
  if (!(n < limit)) inv.fail("the range has too many values: expected at most 2^58");
  line(inv, n > 0 ? int64_t(n) : 0);
}

void shape_eye(Inference& inv) {
  const int columns = attr(inv, "n_cols");
  const int64_t rows = integer(inv, attr(inv, "n_rows"), 0);
  if (!inv.attrs.given(columns)) set_i64(inv, columns, rows);
  const int64_t shape[] = {rows, integer(inv, columns, 0)};
  inv.work = inv.output(0, shape).numel;
}
}  // namespace dovetail::rules
