// Tensors from numbers, joined and rearranged tensors.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/eye_ops.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/linspace_ops.h>
#include <ATen/ops/logspace_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>

#include <cmath>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Ints = c10::IntArrayRef;

// start + step * iota: one program for all lengths.
Tensor& arange_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  const bool whole = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  const int64_t k = whole ? step.toLong() : 0, length = whole ? end.toLong() - start.toLong() : 0;
  const auto as = out.scalar_type();
  if (k && !length) {
    fit(out, {0});
    return out;
  }
  if (k && length && (k > 0) == (length > 0) && as != at::kBool) {
    const int64_t n = (length + k - (k > 0 ? 1 : -1)) / k;
    Tensor r;
    if (Call(op<"iota">()).on(out.device().index()).set("size", n).set("dtype", as).make(r)) {
      fit(out, {n});
      if (k != 1) r = r * step;
      return store(start.toLong() ? r + start : r, out);
    }
  }
  if (!whole && at::isFloatingType(as) && !start.isComplex() && !end.isComplex() && !step.isComplex()) {
    const double from = start.toDouble(), by = step.toDouble(), n = std::ceil((end.toDouble() - from) / by);
    Tensor r;
    if (n >= 1 && n < 1e15 &&
        Call(op<"iota">()).on(out.device().index()).set("size", int64_t(n)).set("dtype", at::kDouble).make(r)) {
      fit(out, {int64_t(n)});
      return store(r * by + from, out);
    }
  }
  return fall_back<aten::arange_start_out>(start, end, step, out);
}
Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out);
Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
  if (!at::isFloatingType(out.scalar_type()) || base <= 0 || start.isComplex() || end.isComplex() || steps < 1)
    return fall_back<aten::logspace_out>(start, end, steps, base, out);
  Tensor exponents = empty({steps}, at::kDouble, out.device().index());
  linspace_out(start, end, steps, exponents);
  fit(out, {steps});
  return store((exponents * std::log(base)).exp(), out);
}
Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out) {
  Tensor r;
  if (at::isFloatingType(out.scalar_type()) && !start.isComplex() && !end.isComplex() && steps > 0 &&
      Call(op<"linspace">())
          .on(out.device().index())
          .set("start", start.toDouble())
          .set("stop", end.toDouble())
          .set("num", steps)
          .set("dtype", out.scalar_type())
          .make(r)) {
    fit(out, {steps});
    return store(r, out);
  }
  return fall_back<aten::linspace_out>(start, end, steps, out);
}
Tensor& eye_out(int64_t n, int64_t m, Tensor& out) {
  fit(out, {n, m});
  if (!out.numel()) return out;
  if (Call(op<"eye">())
          .on(out.device().index())
          .set("n_rows", n)
          .set("n_cols", m)
          .set("dtype", out.scalar_type())
          .into(out))
    return out;
  return fall_back<aten::eye_m_out>(n, m, out);
}
Tensor& eye_square_out(int64_t n, Tensor& out) { return eye_out(n, n, out); }

Tensor& cat_out(const at::ITensorListRef& tensors, int64_t dim, Tensor& out) {
  Call call(op<"concat">());
  bool fits = true;
  Axes size;
  int64_t axis = 0;
  for (const Tensor& t : tensors) {
    if (t.dim() == 1 && t.numel() == 0) continue;  // which torch has always ignored
    if (size.empty()) {
      size.assign(t.sizes().begin(), t.sizes().end());
      axis = dim < 0 ? dim + t.dim() : dim;
      fits = axis >= 0 && axis < t.dim();
    } else if (fits) {
      fits = size_t(t.dim()) == size.size();
      if (fits) size[size_t(axis)] += t.size(axis);
    }
    fits = fits && c10::canCast(t.scalar_type(), out.scalar_type());
    if (!fits) break;
    call.in(t, out.scalar_type());
  }
  const bool is_empty = size.empty() || !c10::multiply_integers(size);
  if (fits && is_empty && out.sizes() == Ints(size.empty() ? Axes{0} : size)) return out;
  if (fits && !is_empty && call.set("axis", axis).into(out)) return out;
  return fall_back<aten::cat_out>(tensors, dim, out);
}

template <class Aten, Name name>
Tensor& triangle_out(const Tensor& x, int64_t k, Tensor& out) {
  return x.numel() && Call(op<name>()).in(x).set("k", k).into(out) ? out : fall_back<Aten>(x, k, out);
}
Tensor flip(const Tensor& x, Ints dims) {
  const Axes axes = axes_of(x.dim(), dims);
  Tensor r;
  if (dims.empty() || !x.numel()) return x.clone();
  return x.dim() && Call(op<"flip">()).in(x).set("axis", axes).make(r) ? r : fall_back<aten::flip>(x, dims);
}
Tensor roll(const Tensor& x, Ints shifts, Ints dims) {
  Tensor r;
  Axes axes;
  for (const int64_t d : dims) axes.push_back(at::maybe_wrap_dim(d, x.dim()));
  if (!x.numel() && shifts.size() == dims.size()) return x.clone();
  if (x.numel() && shifts.size() == std::max<size_t>(dims.size(), 1)) {
    Call call(op<"roll">());
    call.in(x).set("shift", shifts);
    if (!dims.empty()) call.set("axis", axes);
    if (call.make(r)) return r;
  }
  return fall_back<aten::roll>(x, shifts, dims);
}
Tensor embedding(const Tensor& w, const Tensor& i, int64_t padding, bool by_frequency, bool sparse) {
  Tensor r;
  return w.dim() == 2 && Call(op<"embedding">()).positions(i).in(w).make(r)
             ? r
             : fall_back<aten::embedding>(w, i, padding, by_frequency, sparse);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::arange_start_out>(m, &arange_out);
  implement<aten::linspace_out>(m, &linspace_out);
  implement<aten::logspace_out>(m, &logspace_out);
  implement<aten::eye_m_out>(m, &eye_out);
  implement<aten::eye_out>(m, &eye_square_out);
  implement<aten::cat_out>(m, &cat_out);
  implement<aten::tril_out>(m, &triangle_out<aten::tril_out, "tril">);
  implement<aten::triu_out>(m, &triangle_out<aten::triu_out, "triu">);
  implement<aten::flip>(m, &flip);
  implement<aten::roll>(m, &roll);
  implement<aten::embedding>(m, &embedding);
  // torch has a kernel for its own devices alone, and no other way to make them.
  for (const char* name : {"kaiser_window", "kaiser_window.periodic", "kaiser_window.beta"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fall_back_boxed>());
}
}  // namespace dovetail_torch
