#include "dispatch/invocation.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "device/timeline.hpp"
#include "dispatch/execute.hpp"
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
Attrs& Attrs::operator=(const Attrs& o) {
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

Attrs default_attrs(const Op& op) {
  Attrs attrs;
  int i = 0;
  for (const ParamSpec& p : op.spec.params)
    if (!is_operand(p.kind)) set_default(attrs, i++, p);
  return attrs;
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

void DTypeQuery::fail(const std::string& why) const {
  throw Error(ErrorKind::type, "[" + op.spec.name + "] " + why);
}

void Invocation::fail(ErrorKind kind, const std::string& why) const {
  throw Error(kind, "[" + op.spec.name + "] " + why);
}

Tensor& Invocation::output(int i, std::span<const int64_t> shape) {
  Tensor& t = *out[i];
  t.set_type(plan->result[i], device);
  try {
    t.set_shape(shape);
  } catch (const Error& e) {
    fail(e.kind, e.what());
  }
  return t;
}

namespace {
[[noreturn]] void wrong_device(const Invocation& inv, const Tensor& t) {
  inv.fail("arrays on " + inv.device->name + " and " + t.device->name +
           ": expected one device; bring one over with .to_device()");
}

}  // namespace

// A place per operand, none where it is not given, and one for the dtype attribute.
uint64_t dtype_key(const Invocation& inv) {
  constexpr int bits = std::bit_width(unsigned(DType::none));
  static_assert((kMaxInputs + 1) * bits <= 64);
  const Op& op = inv.op;
  uint64_t key = 0;
  if (op.variadic) [[unlikely]] {
    for (int i = 0; i + 1 < op.n_in && i < inv.n_in; ++i)
      key = key << bits | uint64_t(inv.in[i] ? inv.in[i]->dtype : DType::none);
    key = key << bits | uint64_t(rules::promoted(inv));
  } else {
    for (int i = 0; i < inv.n_in; ++i) key = key << bits | uint64_t(inv.in[i] ? inv.in[i]->dtype : DType::none);
  }
  if (op.keyed_by_attrs) key = key << bits | uint64_t(rules::given_dtype(inv));
  return key;
}

void Invocation::infer() {
  for (int i = 0; i < n_in; ++i) {
    const Tensor* t = in[i];
    if (!t || !t->device || t->device == device) [[likely]]
      continue;
    if (device) wrong_device(*this, *t);
    device = t->device;
  }
  if (!device) [[unlikely]]
    fail(ErrorKind::type, "expected at least one array: dovetail.asarray() makes one of a number");
  plan = &op.plan(*device, dtype_key(*this), *this);
  infer_shapes();
  if (replaced) [[unlikely]]
    replace(*replaced);
}

void Invocation::replace(const Tensor& operand) {
  replaced = &operand;
  in_place = operand.storage && operand.dense && operand.dtype == plan->result[0] && operand.same_shape(*out[0]) &&
             operand.storage->refs.load(std::memory_order_acquire) == 1 && is_pooled(*operand.storage);
}

void Invocation::infer_abstract(Plan& made) {
  plan = &made;
  rules::infer_dtypes(*this, made.compute, made.result);
  infer_shapes();
}

void Invocation::infer_shapes() {
  op.shape(*this);
  for (uint32_t i = 1; i < op.spec.n_out; ++i)
    if (out[i]->dtype == DType::none) output(int(i), out[0]->shape());
}

void Invocation::run(Plan::Mode mode) {
  switch (mode) {
    case Plan::kernel: return run_kernel(*this);
    case Plan::view: return run_view(*this);
    case Plan::set_slice: return run_set_slice(*this);
    case Plan::identity: *out[0] = in[0]->device ? *in[0] : materialise(*in[0], *device); return;
    case Plan::decomposition: return run_decomposition(*this);
    case Plan::via_f32: return run_via_f32(*this);
    case Plan::host_fallback: return run_on_host(*this);
  }
}

void call(const Op& op, Device* device, const Tensor* const* in, int n_in, Attrs& attrs, Tensor* out) {
  Invocation inv{.op = op, .device = device, .in = in, .n_in = n_in, .attrs = attrs};
  for (uint32_t i = 0; i < op.spec.n_out; ++i) inv.out[i] = &out[i];
  const auto dispatch = [&] {
    inv.infer();
    inv.run();
  };
  if (recording()) [[unlikely]]
    return run_recorded(op.spec.name.c_str(), dispatch);
  dispatch();
}
}  // namespace dovetail
