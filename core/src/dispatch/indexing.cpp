#include "dispatch/indexing.hpp"

#include <algorithm>

#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
[[noreturn]] void fail(const std::string& why) { throw Error(ErrorKind::index, "[index] " + why); }

// A bound of a forward slice, within 0 and n.
int64_t clipped(int64_t bound, int64_t n) {
  return bound < 0 ? std::max<int64_t>(bound + n, 0) : std::min(bound, n);
}

class Selection {
 public:
  Selection(const Tensor& x, Region& r) : x_(x), r_(r) {}

  void take(const IndexItem& item) {
    const int64_t n = axis_ < x_.rank() ? x_.size(axis_) : 0;
    if (item.kind == IndexItem::new_axis) {
      r_.view.size(out_) = 1, r_.view.stride(out_) = 0;
      ++out_;
    } else if (item.kind == IndexItem::at) {
      const int64_t i = item.start < 0 ? item.start + n : item.start;
      if (i < 0 || i >= n)
        fail("index " + std::to_string(item.start) + " is out of range for axis " + std::to_string(axis_) +
             " of size " + std::to_string(n) + ": expected " + std::to_string(-n) + " to " + std::to_string(n - 1));
      r_.start[axis_] = i, r_.stop[axis_] = i + 1, r_.step[axis_] = 1, r_.out_axis[axis_] = -1;
      ++axis_;
    } else {
      const int64_t start = clipped(item.start, n), stop = clipped(item.stop, n);
      const int64_t count = start < stop ? (stop - start - 1) / item.step + 1 : 0;
      r_.start[axis_] = start, r_.step[axis_] = item.step;
      r_.stop[axis_] = count ? start + (count - 1) * item.step + 1 : start;
      r_.out_axis[axis_] = out_;
      r_.view.size(out_) = count,
      r_.view.stride(out_) = count > 1 ? x_.stride(axis_) * item.step : x_.stride(axis_);
      ++axis_, ++out_;
    }
  }
  void whole(int until) {
    while (axis_ < until) take({.kind = IndexItem::slice});
  }
  void finish() {
    whole(x_.rank());
    int64_t offset = 0;
    for (int a = 0; a < x_.rank(); ++a) offset += r_.start[a] * x_.stride(a);
    r_.view.set_rank(out_);
    r_.view.update_dense();
    if (r_.view.numel) r_.view.view.data = static_cast<char*>(x_.view.data) + offset * info(x_.dtype).bytes();
  }

 private:
  const Tensor& x_;
  Region& r_;
  int axis_ = 0, out_ = 0;
};
}  // namespace

Region select(const Tensor& x, std::span<const IndexItem> items) {
  if (is_packed(x.dtype)) throw Error(ErrorKind::type, "[index] " + storage_refusal(x.dtype));
  int64_t used = 0, added = 0, ellipses = 0;
  for (const IndexItem& item : items) {
    if (item.kind == IndexItem::ellipsis) ++ellipses;
    else if (item.kind == IndexItem::new_axis) ++added;
    else ++used;
    if (item.kind == IndexItem::slice && item.step < 1)
      fail("a step of " + std::to_string(item.step) + ": expected at least 1; the op flip reverses an axis");
  }
  if (ellipses > 1) fail("an index can have only one Ellipsis ('...')");
  if (used > x.rank())
    fail("too many indices: the array has " + std::to_string(x.rank()) + " axes, but " + std::to_string(used) +
         " were indexed");
  if (x.rank() + added > DVT_MAX_NDIM)
    fail("the result would have " + std::to_string(x.rank() + added) + " axes: expected at most " +
         std::to_string(DVT_MAX_NDIM));
  Region r;
  r.view = x;
  Selection selection(x, r);
  int64_t behind = used;  // items of axes that are still to come
  for (const IndexItem& item : items) {
    if (item.kind == IndexItem::ellipsis) {
      selection.whole(x.rank() - int(behind));
      continue;
    }
    behind -= item.kind != IndexItem::new_axis;
    selection.take(item);
  }
  selection.finish();
  return r;
}

Tensor over_axes(const Tensor& v, const Tensor& x, const Region& r) {
  const int rank = r.view.rank();
  Tensor trimmed = v;
  const int lead = std::max(0, v.rank() - rank);
  bool fits = std::all_of(v.dims, v.dims + lead, [](int64_t n) { return n == 1; });
  trimmed.set_rank(v.rank() - lead);
  for (int i = 0; i < trimmed.rank(); ++i) {
    trimmed.size(i) = v.size(i + lead), trimmed.stride(i) = v.stride(i + lead);
    fits = fits && (trimmed.size(i) == 1 || trimmed.size(i) == r.view.size(rank - trimmed.rank() + i));
  }
  if (!fits)
    throw Error(ErrorKind::value, "[setitem] a value of shape " + to_string(v.shape()) +
                                      " does not broadcast to the selection's shape " + to_string(r.view.shape()));
  const Tensor spread = broadcast_view(trimmed, r.view.shape());
  Tensor out = spread;
  out.set_rank(x.rank());
  for (int a = 0; a < x.rank(); ++a) {
    const int from = r.out_axis[a];
    out.size(a) = from < 0 ? 1 : spread.size(from);
    out.stride(a) = from < 0 ? 0 : spread.stride(from);
  }
  out.update_dense();
  return out;
}
}  // namespace dovetail
