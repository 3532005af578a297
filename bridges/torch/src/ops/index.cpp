// Gather, scatter, sort, and indexing with tensors.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/_unique2_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/masked_scatter_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/scatter_reduce_ops.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Ints = c10::IntArrayRef;

int64_t axis_of(const Tensor& x, int64_t dim) { return at::maybe_wrap_dim(dim, x.dim()); }

// ---- along one axis
Tensor slices_at(const Tensor& x, int64_t dim, const Tensor& i) {
  if (!x.dim() && i.numel() == 1) return slices_at(x.unsqueeze(0), 0, i.reshape({1})).squeeze(0);
  Tensor r;
  const bool fits = x.dim() && i.dim() == 1;
  return fits && Call(op<"take">()).in(x).positions(i).set("axis", axis_of(x, dim)).make(r)
             ? r
             : fall_back<aten::index_select>(x, dim, i);
}
// The part of x that torch's gather and scatter see: they take an index that is smaller on the other axes.
bool same_axes(const Tensor& x, const Tensor& i, int64_t axis, bool along_too, Tensor& part) {
  if (!x.dim() || x.dim() != i.dim() || !i.numel() || !x.numel()) return false;
  part = x;
  for (int64_t a = 0; a < x.dim(); ++a) {
    if (a == axis && !along_too) continue;
    if (i.size(a) > x.size(a)) return false;  // torch's error
    part = part.narrow(a, 0, i.size(a));
  }
  return true;
}
Tensor& gather_out(const Tensor& x, int64_t dim, const Tensor& i, bool sparse, Tensor& out) {
  fit(out, i.sizes());
  if (!x.dim() || !i.dim()) {
    Tensor whole = out.dim() ? out : out.unsqueeze(0);
    gather_out(x.dim() ? x : x.unsqueeze(0), dim, i.dim() ? i : i.unsqueeze(0), sparse, whole);
    return out;
  }
  if (!i.numel()) return out;
  Tensor part;
  const bool indices = i.scalar_type() == at::kLong || i.scalar_type() == at::kInt;
  if (indices && same_axes(x, i, axis_of(x, dim), false, part) &&
      Call(op<"take_along_axis">()).in(part).positions(i).set("axis", axis_of(x, dim)).into(out))
    return out;
  return fall_back<aten::gather_out>(x, dim, i, sparse, out);
}
// out, which holds x, with values of src joined at the indices.
bool scatter_into(const Tensor& out, int64_t dim, const Tensor& i, const Tensor& src, const char* mode) {
  if (!out.dim() && i.dim() <= 1)
    return scatter_into(out.unsqueeze(0), 0, i.reshape({-1}), src.dim() ? src : src.reshape({-1}), mode);
  Tensor target, values;
  const int64_t axis = axis_of(out, dim);
  if (i.scalar_type() != at::kLong || !same_axes(out, i, axis, false, target)) return false;
  if (src.dim() && !same_axes(src, i, axis, true, values)) return false;
  Call call(op<"put_along_axis">());
  call.in(target).positions(i).in(src.dim() ? values : src, out.scalar_type());
  return call.set("axis", axis).set("mode", mode).into(target);
}
// What a scatter starts from. False: torch's kernel is to do the whole call.
bool begin(const Tensor& x, const Tensor& i, Tensor& out) {
  if (i.numel() && i.scalar_type() != at::kLong) return false;
  if (!out.is_same(x)) store(x, out);
  return true;
}
Tensor& scatter_src_out(const Tensor& x, int64_t dim, const Tensor& i, const Tensor& src, Tensor& out) {
  if (begin(x, i, out) && (!i.numel() || scatter_into(out, dim, i, src, "set"))) return out;
  return fall_back<aten::scatter_src_out>(x, dim, i, src, out);
}
Tensor& scatter_value_out(const Tensor& x, int64_t dim, const Tensor& i, const Scalar& value, Tensor& out) {
  if (begin(x, i, out) &&
      (!i.numel() || scatter_into(out, dim, i, at::zeros({}, out.options()).fill_(value), "set")))
    return out;
  return fall_back<aten::scatter_value_out>(x, dim, i, value, out);
}
Tensor& scatter_add_out(const Tensor& x, int64_t dim, const Tensor& i, const Tensor& src, Tensor& out) {
  if (begin(x, i, out) && (!i.numel() || scatter_into(out, dim, i, src, "add"))) return out;
  return fall_back<aten::scatter_add_out>(x, dim, i, src, out);
}
const char* mode_of(c10::string_view reduce) {
  if (reduce == "add" || reduce == "sum") return "add";
  if (reduce == "multiply" || reduce == "prod") return "multiply";
  if (reduce == "amax") return "max";
  return reduce == "amin" ? "min" : nullptr;
}
Tensor& scatter_reduce_src_out(const Tensor& x, int64_t dim, const Tensor& i, const Tensor& src,
                               c10::string_view reduce, Tensor& out) {
  const char* const mode = mode_of(reduce);
  if (mode && begin(x, i, out) && (!i.numel() || scatter_into(out, dim, i, src, mode))) return out;
  return fall_back<aten::scatter_reduce_out>(x, dim, i, src, reduce, out);
}
Tensor& scatter_reduce_value_out(const Tensor& x, int64_t dim, const Tensor& i, const Scalar& value,
                                 c10::string_view reduce, Tensor& out) {
  const char* const mode = mode_of(reduce);
  if (mode && begin(x, i, out) &&
      (!i.numel() || scatter_into(out, dim, i, at::zeros({}, out.options()).fill_(value), mode)))
    return out;
  return fall_back<aten::scatter_value_reduce_out>(x, dim, i, value, reduce, out);
}
Tensor& scatter_reduce_two_out(const Tensor& x, int64_t dim, const Tensor& i, const Tensor& src,
                               c10::string_view reduce, bool include_self, Tensor& out) {
  const char* const mode = mode_of(reduce);
  if (mode && include_self && begin(x, i, out) && (!i.numel() || scatter_into(out, dim, i, src, mode))) return out;
  return fall_back<aten::scatter_reduce_two_out>(x, dim, i, src, reduce, include_self, out);
}

// Slices of x along one axis, a vector of indices. `negative`: they may count from the end.
bool scatter_slices(const Tensor& out, int64_t dim, const Tensor& i, const Tensor& updates, const char* mode,
                    bool negative = false) {
  if (!out.dim())
    return scatter_slices(out.unsqueeze(0), 0, i, updates.dim() ? updates : updates.unsqueeze(0), mode, negative);
  if (i.dim() > 1 || !out.numel()) return false;
  if (!i.numel()) return true;
  Call call(op<"scatter">());
  call.in(out);
  if (negative) call.in(i.reshape({-1}));
  else call.positions(i.reshape({-1}));
  return call.in(updates, out.scalar_type()).set("axis", axis_of(out, dim)).set("mode", mode).into(out);
}
Tensor& index_add_out(const Tensor& x, int64_t dim, const Tensor& i, const Tensor& source, const Scalar& alpha,
                      Tensor& out) {
  if (!out.is_same(x)) store(x, out);
  if (source.dim() == x.dim() && scatter_slices(out, dim, i, is_one(alpha) ? source : source * alpha, "add"))
    return out;
  return fall_back<aten::index_add_out>(x, dim, i, source, alpha, out);
}
Tensor& index_copy_out(const Tensor& x, int64_t dim, const Tensor& i, const Tensor& source, Tensor& out) {
  if (!out.is_same(x)) store(x, out);
  if (source.dim() == x.dim() && scatter_slices(out, dim, i, source, "set")) return out;
  return fall_back<aten::index_copy_out>(x, dim, i, source, out);
}
Tensor& index_fill_(Tensor& x, int64_t dim, const Tensor& i, const Scalar& value) {
  if (scatter_slices(x, dim, i, at::zeros({}, x.options()).fill_(value), "set", true)) return x;
  return fall_back<aten::index_fill__int_Scalar>(x, dim, i, value);
}
Tensor& index_fill_tensor_(Tensor& x, int64_t dim, const Tensor& i, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  if (scatter_slices(x, dim, i, value, "set", true)) return x;
  return fall_back<aten::index_fill__int_Tensor>(x, dim, i, value);
}
Tensor embedding_backward(const Tensor& grad, const Tensor& i, int64_t n, int64_t padding, bool by_frequency) {
  if (!by_frequency && i.numel() && grad.numel()) {
    const Tensor flat = i.reshape({-1});
    Tensor rows = grad.reshape({flat.size(0), -1});
    if (padding >= 0) rows = rows.masked_fill(flat.eq(padding).unsqueeze(-1), 0);
    const Tensor out = at::zeros({n, rows.size(1)}, grad.options());
    if (scatter_slices(out, 0, flat, rows, "add")) return out;
  }
  return fall_back<aten::embedding_dense_backward>(grad, i, n, padding, by_frequency);
}

// ---- x[indices]: positions in a flat x
Tensor nonzero_of(const Tensor& x);
// Boolean indices become integers, absent ones stay; the axes that are indexed come first.
struct Positions {
  Tensor flat;                    // into the indexed axes as one
  Tensor moved;                   // x with the indexed axes first
  Axes index_size, rest;          // of the indices, broadcast; the other axes
  int64_t n_indexed = 0, at = 0;  // `at`: where the indices' axes stand in the result
};
bool positions(const Tensor& x, const c10::List<OptionalTensor>& given_indices, Positions& p) {
  std::vector<Tensor> indices;
  for (const OptionalTensor& o : given_indices) {
    if (!given(o)) {
      indices.emplace_back();
      continue;
    }
    Tensor t = o->device() == x.device() ? *o : o->to(x.device());
    if (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte) {
      if (t.dim() == 0) return false;
      for (int64_t a = 0; a < t.dim(); ++a)
        if (int64_t(indices.size()) + a >= x.dim() || t.size(a) != x.size(int64_t(indices.size()) + a))
          return false;
      for (const Tensor& column : nonzero_of(t).unbind(1)) indices.push_back(column);
    } else {
      TORCH_CHECK_INDEX(t.scalar_type() == at::kLong || t.scalar_type() == at::kInt,
                        "tensors used as indices must be long, int, byte or bool tensors");
      indices.push_back(t.to(at::kLong));
    }
  }
  if (int64_t(indices.size()) > x.dim()) return false;
  std::vector<Tensor> used;
  Axes order, last;
  int64_t first = -1;
  bool adjacent = true;
  for (int64_t a = 0; a < x.dim(); ++a) {
    if (a < int64_t(indices.size()) && indices[size_t(a)].defined()) {
      if (first < 0) first = a;
      else adjacent = adjacent && order.back() == a - 1;
      order.push_back(a);
      used.push_back(indices[size_t(a)]);
    } else {
      last.push_back(a);
    }
  }
  if (used.empty() || !x.numel()) return false;
  used = at::expand_outplace(used);
  if (!used[0].numel()) return false;
  p.n_indexed = int64_t(order.size());
  p.at = adjacent ? first : 0;
  order.append(last.begin(), last.end());
  p.moved = x.permute(order);
  for (int64_t k = 0; k < p.n_indexed; ++k) {
    const int64_t size = p.moved.size(k);
    const Tensor& i = used[size_t(k)];
    if (k == 0 && p.n_indexed == 1) {
      p.flat = i;  // `take` counts negative ones from the end and refuses others itself
      continue;
    }
    const Tensor wrapped = i.lt(0).logical_and(i.ge(-size)).mul(size).add(i);
    TORCH_CHECK_INDEX(wrapped.ge(0).logical_and(wrapped.lt(size)).all().item().toBool(),
                      "index out of bounds for dimension ", order[size_t(k)], " with size ", size);
    p.flat = k ? p.flat * size + wrapped : wrapped;
  }
  p.index_size.assign(used[0].sizes().begin(), used[0].sizes().end());
  for (int64_t k = p.n_indexed; k < x.dim(); ++k) p.rest.push_back(p.moved.size(k));
  return true;
}
// The result's axes: the indices' first -> where they stand.
Tensor to_result(const Tensor& t, const Positions& p) {
  const int64_t n = int64_t(p.index_size.size()), all = t.dim();
  Axes order;
  for (int64_t k = 0; k < p.at; ++k) order.push_back(n + k);
  for (int64_t k = 0; k < n; ++k) order.push_back(k);
  for (int64_t k = n + p.at; k < all; ++k) order.push_back(k);
  return t.permute(order);
}
Tensor from_result(const Tensor& t, const Positions& p) {
  const int64_t n = int64_t(p.index_size.size()), all = t.dim();
  Axes order;
  for (int64_t k = 0; k < n; ++k) order.push_back(p.at + k);
  for (int64_t k = 0; k < all; ++k)
    if (k < p.at || k >= p.at + n) order.push_back(k);
  return t.permute(order);
}
Tensor index_tensor(const Tensor& x, const c10::List<OptionalTensor>& indices) {
  Positions p;
  Tensor r;
  if (positions(x, indices, p)) {
    Axes rows{-1};
    rows.append(p.rest.begin(), p.rest.end());
    if (Call(op<"take">()).in(p.moved.reshape(rows)).in(p.flat).set("axis", int64_t(0)).make(r))
      return to_result(r, p);
  }
  return fall_back<aten::index_Tensor>(x, indices);
}
Tensor& index_tensor_out(const Tensor& x, const c10::List<OptionalTensor>& indices, Tensor& out) {
  const Tensor r = index_tensor(x, indices);
  return store(r, out);
}
Tensor& index_put_impl_(Tensor& x, const c10::List<OptionalTensor>& indices, const Tensor& values, bool accumulate,
                        bool unsafe) {
  Positions p;
  if (values.scalar_type() == x.scalar_type() && positions(x, indices, p)) {
    Axes rows{-1}, size(p.index_size), flat_values{p.flat.numel()};
    rows.append(p.rest.begin(), p.rest.end());
    flat_values.append(p.rest.begin(), p.rest.end());
    size.insert(size.begin(), p.rest.begin(), p.rest.begin() + p.at);  // the shape of x[indices]
    size.append(p.rest.begin() + p.at, p.rest.end());
    if (at::is_expandable_to(values.sizes(), size)) {
      const Tensor whole = from_result(values.to(x.device()).expand(size), p).reshape(flat_values);
      const Tensor target = p.moved.reshape(rows);  // a view, or a copy
      if (scatter_slices(target, 0, p.flat, whole, accumulate ? "add" : "set", true)) {
        if (!target.is_alias_of(x)) p.moved.copy_(target.view(p.moved.sizes()));
        return x;
      }
    }
  }
  return fall_back<aten::_index_put_impl_>(x, indices, values, accumulate, unsafe);
}

// ---- sizes that depend on values
Tensor nonzero_of(const Tensor& x) {
  dvr_tensor from, found[DVT_MAX_NDIM];
  const uint32_t n = uint32_t(x.dim());
  if (!n) return empty({x.ne(0).item().toBool(), 0}, at::kLong, x.device().index());
  if (!describe(x, from) || x.is_neg() || x.is_conj()) return fall_back<aten::nonzero>(x);
  const dvr_status status = dvr_nonzero(&from, found, n);
  if (is_refusal(status)) return fall_back<aten::nonzero>(x);
  check(status);
  std::vector<Tensor> columns;
  for (uint32_t a = 0; a < n; ++a) columns.push_back(wrap(found[a], x.device().index()).unsqueeze(1));
  return columns.size() == 1 ? columns[0] : at::cat(columns, 1);
}
Tensor& nonzero_out(const Tensor& x, Tensor& out) {
  const Tensor r = nonzero_of(x);
  return store(r, out);
}
Tensor select_by_mask(const Tensor& x, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const auto [a, m] = at::expand_outplace(x, mask);
  const Tensor flat = a->reshape({-1});
  return flat.index_select(0, nonzero_of(m->reshape({-1})).squeeze(1));
}
Tensor& masked_select_out(const Tensor& x, const Tensor& mask, Tensor& out) {
  const Tensor r = select_by_mask(x, mask);
  return store(r, out);
}
Tensor& masked_scatter_(Tensor& x, const Tensor& mask, const Tensor& source) {
  if (mask.scalar_type() == at::kBool && source.scalar_type() == x.scalar_type() && x.numel()) {
    const Tensor m = mask.expand(x.sizes()).reshape({-1});
    const Tensor place = m.cumsum(0).sub_(1);
    TORCH_CHECK(m.sum().item().toLong() <= source.numel(),
                "masked_scatter: expected self and source to have same dtypes and ",
                "source to have as many elements as the mask has ones");
    if (source.numel())
      return x.copy_(
          select_by(m, source.reshape({-1}).index_select(0, place.clamp_min(0)), x.reshape({-1})).view(x.sizes()));
  }
  return fall_back<aten::masked_scatter_>(x, mask, source);
}
std::tuple<Tensor, Tensor, Tensor> unique2(const Tensor& x, bool sorted, bool inverse, bool counts) {
  dvr_tensor from, values, inverse_of, counts_of;
  const auto index = x.device().index();
  if (x.numel() && describe(x, from) && !x.is_complex()) {
    const dvr_status status =
        dvr_unique(&from, &values, nullptr, inverse ? &inverse_of : nullptr, counts ? &counts_of : nullptr);
    if (status == DVR_OK) {
      const Tensor none = empty({0}, at::kLong, index);
      return {wrap(values, index), inverse ? wrap(inverse_of, index).view(x.sizes()) : none,
              counts ? wrap(counts_of, index) : none};
    }
    if (!is_refusal(status)) raise(status);
  }
  return fall_back<aten::_unique2>(x, sorted, inverse, counts);
}

// ---- order
// Integers in the order of the floats, NaN above inf, zeros of both signs equal.
Tensor order_key(const Tensor& x) {
  const auto of = [&](at::ScalarType integer, int64_t least) {
    const Tensor bits = x.resolve_neg().contiguous().view(integer);
    return select_by(bits.lt(0), bits.neg().add(least), bits).masked_fill_(x.isnan(), ~least);
  };
  if (x.element_size() == 8) return of(at::kLong, std::numeric_limits<int64_t>::min());
  if (x.element_size() == 4) return of(at::kInt, std::numeric_limits<int32_t>::min());
  return of(at::kShort, std::numeric_limits<int16_t>::min());
}
// torch has NaN as the largest value, Dovetail as the last one in both orders.
Tensor keys_of(const Tensor& x, bool descending) {
  return descending && is_real_float(x) && x.element_size() > 1 ? order_key(x) : x;
}
std::tuple<Tensor&, Tensor&> topk_out(const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted,
                                      Tensor& values, Tensor& indices) {
  const char* const mode = largest ? "largest" : "smallest";
  if (x.dim() && k && x.numel()) {
    const int64_t axis = axis_of(x, dim);
    const Tensor keys = keys_of(x, largest);
    Call call(op<"top_k">());
    call.in(keys).set("k", k).set("axis", axis).set("mode", mode);
    if (keys.is_same(x)) {
      if (call.into(values, indices)) return {values, indices};
    } else if (Tensor found = empty(values.sizes(), keys.scalar_type(), x.device().index());
               call.into(found, indices) &&
               Call(op<"take_along_axis">()).in(x).in(indices).set("axis", axis).into(values)) {
      return {values, indices};
    }
  }
  return fall_back<aten::topk_values>(x, k, dim, largest, sorted, values, indices);
}
std::tuple<Tensor&, Tensor&> sort_out(const Tensor& x, std::optional<bool> stable, int64_t dim, bool descending,
                                      Tensor& values, Tensor& indices) {
  Tensor order;
  if (x.dim() && x.numel() &&
      Call(op<"argsort">())
          .in(keys_of(x, descending))
          .set("axis", axis_of(x, dim))
          .set("descending", descending)
          .make(order) &&
      Call(op<"take_along_axis">()).in(x).in(order).set("axis", axis_of(x, dim)).into(values)) {
    store(order, indices);
    return {values, indices};
  }
  return fall_back<aten::sort_values_stable>(x, stable, dim, descending, values, indices);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::index_select>(m, &slices_at);
  implement<aten::gather_out>(m, &gather_out);
  implement<aten::scatter_src_out>(m, &scatter_src_out);
  implement<aten::scatter_value_out>(m, &scatter_value_out);
  implement<aten::scatter_reduce_out>(m, &scatter_reduce_src_out);
  implement<aten::scatter_value_reduce_out>(m, &scatter_reduce_value_out);
  implement<aten::scatter_add_out>(m, &scatter_add_out);
  implement<aten::scatter_reduce_two_out>(m, &scatter_reduce_two_out);
  implement<aten::index_add_out>(m, &index_add_out);
  implement<aten::index_copy_out>(m, &index_copy_out);
  implement<aten::index_fill__int_Scalar>(m, &index_fill_);
  implement<aten::index_fill__int_Tensor>(m, &index_fill_tensor_);
  implement<aten::embedding_dense_backward>(m, &embedding_backward);
  implement<aten::index_Tensor>(m, &index_tensor);
  implement<aten::index_Tensor_out>(m, &index_tensor_out);
  implement<aten::_index_put_impl_>(m, &index_put_impl_);
  implement<aten::nonzero>(m, &nonzero_of);
  implement<aten::nonzero_out>(m, &nonzero_out);
  implement<aten::masked_select>(m, &select_by_mask);
  implement<aten::masked_select_out>(m, &masked_select_out);
  implement<aten::masked_scatter_>(m, &masked_scatter_);
  implement<aten::_unique2>(m, &unique2);
  implement<aten::topk_values>(m, &topk_out);
  implement<aten::sort_values_stable>(m, &sort_out);
}
}  // namespace dovetail_torch
