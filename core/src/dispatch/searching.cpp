#include "dispatch/searching.hpp"

#include <algorithm>
#include <optional>

#include "dispatch/execute.hpp"
#include "dispatch/host_memory.hpp"
#include "dispatch/named_attrs.hpp"
#include "dispatch/numbers.hpp"

namespace dovetail {
namespace {
using Named = std::initializer_list<std::pair<const char*, dvt_attr>>;
dvt_attr integer(int64_t i) { return {DVT_A_I64, 1, {.i = i}}; }
dvt_attr dtype(DType t) { return {DVT_A_DTYPE, 1, {.dt = info(t).dl}}; }
const dvt_attr int64 = dtype(DType::i64);

// The op's result for these operands; `device`: for an op without any.
Tensor run(const char* name, std::initializer_list<const Tensor*> in, Named named = {}, Device* device = nullptr) {
  const Op& o = op(name);
  Attrs attrs = o.defaults;
  for (const auto& [attr, value] : named) set_attr(o, attrs, attr, value);
  Tensor out;
  call(o, device, in.begin(), int(in.size()), attrs, &out);
  return out;
}

Tensor number(int64_t value) {
  return number_of(Integer{.bits = uint64_t(value), .negative = value < 0}, DType::i64, "nonzero");
}

Tensor flat(const Tensor& x) {
  const auto n = int64_t(x.numel);
  Tensor t = x.dense ? x : compact(x);
  t.set_shape({&n, 1});
  return t;
}

// Elements from `begin` to `end` of a vector, which lie side by side.
Tensor part(const Tensor& x, int64_t begin, int64_t end) {
  Tensor t = x;
  const int64_t n = end - begin;
  t.set_shape({&n, 1});
  if (n) t.view.data = static_cast<char*>(x.view.data) + begin * info(x.dtype).bytes();
  return t;
}

int64_t value_of(const Tensor& t) {
  int64_t value = 0;
  download(t, &value);
  return value;
}

// The mask is dense, and the host can read it.
std::vector<Tensor> nonzero_on_host(const Tensor& mask) {
  const int rank = mask.rank();
  std::vector<Tensor> found;
  std::optional<GilRelease> others_run;
  if (mask.numel > kManyBytes) others_run.emplace();
  host_access(*mask.storage, false);
  const auto* at = static_cast<const uint8_t*>(mask.view.data);
  const int64_t count = std::count_if(at, at + mask.numel, [](uint8_t b) { return b != 0; });
  const int64_t capacity = count + 1;  // a false element's position is written too, and overwritten by the next
  std::vector<int64_t*> to;
  for (int axis = 0; axis < rank; ++axis) {
    Tensor& t = found.emplace_back(empty_tensor(DType::i64, {&capacity, 1}, *mask.device));
    host_access(*t.storage, true);
    to.push_back(static_cast<int64_t*>(t.view.data));
  }
  const int64_t width = mask.size(rank - 1), rows = width ? int64_t(mask.numel) / width : 0;
  int64_t row_index[DVT_MAX_NDIM] = {}, k = 0;
  for (int64_t row = 0; row < rows; ++row, at += width) {
    const int64_t first = k;
    for (int64_t i = 0; i < width; ++i) to[rank - 1][k] = i, k += at[i] != 0;
    for (int axis = 0; axis + 1 < rank; ++axis) std::fill(to[axis] + first, to[axis] + k, row_index[axis]);
    for (int axis = rank - 1; axis-- > 0;) {
      if (++row_index[axis] < mask.size(axis)) break;
      row_index[axis] = 0;
    }
  }
  for (Tensor& t : found) t.set_shape({&count, 1});
  return found;
}

// Of the true elements of a dense vector: counted first, then filled.
Tensor positions(const Tensor& mask) {
  Device& device = *mask.device;
  if (device.host_mapped) return std::move(nonzero_on_host(mask)[0]);
  const auto n = int64_t(mask.numel);
  if (n == 0) return empty_tensor(DType::i64, mask.shape(), device);
  const Tensor upto = run("cumulative_sum", {&mask}, {{"dtype", int64}});
  const int64_t count = value_of(part(upto, n - 1, n)), capacity = count + 1;
  const Tensor one = number(1), behind = number(count);
  const Tensor before = run("subtract", {&upto, &one});
  const Tensor target =
      run("where", {&mask, &before, &behind});  // all false elements go to one place after the end
  const Tensor numbers = run("iota", {}, {{"size", integer(n)}, {"dtype", int64}}, &device);
  const Tensor out = empty_tensor(DType::i64, {&capacity, 1}, device);
  return part(run("scatter", {&out, &target, &numbers}), 0, count);
}

// What sorts x; the first place of each value in that order; where a value begins, as a mask.
struct Groups {
  Tensor order, firsts, begins;
};

// Column k of a matrix, as a view.
Tensor column(const Tensor& x, int64_t k) {
  Tensor t = x;
  t.set_rank(1);
  t.size(0) = x.size(0), t.stride(0) = x.stride(0);
  t.update_dense();
  t.view.data = static_cast<char*>(x.view.data) + k * x.stride(1) * int64_t(info(x.dtype).bytes());
  return t;
}

// The positions of x's elements in ascending order: of complex numbers by their real parts, equal ones by the
// imaginary parts.
Tensor order_of(const Tensor& x) {
  if (!is_complex(x.dtype)) return run("argsort", {&x});
  const DType part = x.dtype == DType::c64 ? DType::f32 : DType::f64;
  const Tensor parts = run("bitcast", {&x}, {{"dtype", dtype(part)}});
  const Tensor real = column(parts, 0), imag = column(parts, 1), by_imag = run("argsort", {&imag});
  const Tensor ordered = run("take", {&real, &by_imag}, {{"axis", integer(0)}});
  const Tensor by_real = run("argsort", {&ordered});  // a stable one
  return run("take", {&by_imag, &by_real}, {{"axis", integer(0)}});
}

Groups groups_of(const Tensor& x) {
  const auto n = int64_t(x.numel);
  Groups g;
  g.order = order_of(x);
  const Tensor ordered = run("take", {&x, &g.order}, {{"axis", integer(0)}});
  const Tensor next = part(ordered, 1, n), previous = part(ordered, 0, n - 1);
  const Tensor changes = run("not_equal", {&next, &previous});  // true between NaNs
  const uint8_t yes = 1;
  const int64_t one = 1;
  const Tensor first = upload(&yes, DType::b8, {&one, 1}, *x.device);
  g.begins = run("concat", {&first, &changes}, {{"axis", integer(0)}});
  g.firsts = positions(g.begins);
  return g;
}
}  // namespace

std::vector<Tensor> nonzero(const Tensor& x) {
  if (x.rank() == 0)
    throw Error(ErrorKind::value,
                "[nonzero] expected an array of one axis or more, got shape (): reshape it to (1,)");
  const Tensor zero = number_of(Integer{}, DType::i8, "nonzero");
  Tensor mask = x;
  if (x.dtype != DType::b8) {
    const Tensor none = cast_scalar(zero, x.dtype);
    mask = run("not_equal", {&x, &none});
  }
  if (!mask.dense) mask = compact(mask);
  if (mask.device->host_mapped) return nonzero_on_host(mask);
  Tensor left = positions(flat(mask));
  std::vector<Tensor> found(x.rank());
  for (int axis = x.rank() - 1; axis > 0; --axis) {
    const Tensor n = number(x.size(axis));
    Tensor above = run("quotient", {&left, &n});
    const Tensor whole = run("multiply", {&above, &n});
    found[axis] = run("subtract", {&left, &whole});
    left = std::move(above);
  }
  found[0] = std::move(left);
  return found;
}

Unique unique(const Tensor& given, bool values_only) {
  const Tensor x = flat(given);
  const auto n = int64_t(x.numel);
  const std::vector<int64_t> shape(given.shape().begin(), given.shape().end());
  Unique u;
  if (n == 0) {
    u.values = empty_tensor(x.dtype, x.shape(), *x.device);
    u.indices = empty_tensor(DType::i64, x.shape(), *x.device), u.counts = u.indices;
    u.inverse = empty_tensor(DType::i64, shape, *x.device);
    return u;
  }
  const Groups g = groups_of(x);
  u.indices = run("take", {&g.order, &g.firsts}, {{"axis", integer(0)}});
  u.values = run("take", {&x, &u.indices}, {{"axis", integer(0)}});
  if (values_only) return u;
  const Tensor one = number(1);
  const Tensor upto = run("cumulative_sum", {&g.begins}, {{"dtype", int64}});
  const Tensor group = run("subtract", {&upto, &one});
  const Tensor room = empty_tensor(DType::i64, x.shape(), *x.device);
  u.inverse = run("scatter", {&room, &g.order, &group});
  u.inverse.set_shape(shape);
  const Tensor later = part(g.firsts, 1, int64_t(g.firsts.numel));
  const int64_t single = 1;
  const Tensor end = upload(&n, DType::i64, {&single, 1}, *x.device);
  const Tensor ends = run("concat", {&later, &end}, {{"axis", integer(0)}});
  u.counts = run("subtract", {&ends, &g.firsts});
  return u;
}
}  // namespace dovetail
