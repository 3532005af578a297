// Ops: found by name, called, inferred.
#include <algorithm>

#include "api/api.hpp"
#include "dispatch/checks.hpp"
#include "dispatch/named_attrs.hpp"
#include "dispatch/numbers.hpp"
#include "dispatch/searching.hpp"
#include "text.hpp"

namespace dovetail::api {
namespace {
// The dtype of a number alone, as of a Python number.
DType own_dtype(DType t) {
  switch (info(t).kind) {
    case DKind::boolean: return DType::b8;
    case DKind::signed_int:
    case DKind::unsigned_int: return kDefaultInt;
    case DKind::floating: return kDefaultFloat;
    default: return DType::c64;
  }
}

template <class T>
T value_of(const Tensor& host, DType t) {
  const Tensor wide = host.dtype == t ? host : cast_scalar(host, t);
  T value;
  std::memcpy(&value, wide.view.data, sizeof value);
  return value;
}

// A number as an operand of dtype `t`.
Tensor number_as(const Tensor& host, DType t, const Op& op) {
  const char* name = op.spec.name.c_str();
  if (is_integer(t)) {
    if (info(host.dtype).kind == DKind::unsigned_int)
      return number_of(Integer{.bits = value_of<uint64_t>(host, DType::u64)}, t, name);
    const auto value = value_of<int64_t>(host, DType::i64);
    return number_of(Integer{.bits = uint64_t(value), .negative = value < 0}, t, name);
  }
  if (t == DType::b8) return bool_number_of(value_of<uint8_t>(host, DType::b8));
  if (is_complex(t)) {
    struct Parts {
      double real, imaginary;
    };
    const auto parts = value_of<Parts>(host, DType::c128);
    return complex_number_of(parts.real, parts.imaginary, t);
  }
  return number_of(value_of<double>(host, DType::f64), t, name);
}

const ParamSpec& operand_spec(const Op& op, uint32_t i) {
  const ParamSpec* last = nullptr;
  for (const ParamSpec& p : op.spec.params)
    if (is_operand(p.kind)) {
      last = &p;
      if (p.variadic || i-- == 0) return p;
    }
  if (!last) throw Error(ErrorKind::type, "[" + op.spec.name + "] expected no operands");
  throw Error(ErrorKind::type,
              "[" + op.spec.name + "] too many operands: expected at most " + std::to_string(op.n_in));
}

// With the optional ones at the end, which a caller may leave out.
uint32_t all_operands(const Op& op, uint32_t given) {
  return op.variadic ? given : std::max(given, uint32_t(op.n_in));
}

// The operands and attributes of one call.
class Call {
 public:
  // `abstract`: operands need no memory.
  Call(const Op& op, Device* device, const dvr_tensor* const* in, uint32_t n, bool abstract = false)
      : op_(op),
        tensors_(all_operands(op, n)),
        in_(tensors_.size()),
        inv_(op, device, in_.data(), int(in_.size()), attrs_) {
    if (n) expect(in, "the list of operands");
    if (!op.variadic && n < uint32_t(op.n_in))
      for (uint32_t i = n; i < uint32_t(op.n_in); ++i)
        if (!operand_spec(op, i).optional)
          throw Error(ErrorKind::type,
                      "[" + op.spec.name + "] misses the operand '" + operand_spec(op, i).name + "'");
    NumberDType dtypes(op);
    for (uint32_t i = 0; i < n; ++i) {
      const ParamSpec& p = operand_spec(op, i);
      if (!in[i]) {
        if (!p.optional)
          throw Error(ErrorKind::type, "[" + op.spec.name + "] the operand '" + p.name + "' is NULL");
        continue;
      }
      if (is_number(*in[i])) continue;
      tensors_[i] = abstract ? abstract_tensor(*in[i], p) : to_tensor(in[i], p.name.c_str());
      in_[i] = &tensors_[i];
      dtypes.add_array(int(i), tensors_[i].dtype);
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (!in[i] || !is_number(*in[i])) continue;
      const Tensor host = host_scalar(to_dtype(in[i]->view.dtype), in[i]->view.data);
      tensors_[i] = number_as(host, dtypes.of(int(i), own_dtype(host.dtype)), op);
      in_[i] = &tensors_[i];
    }
    if (!abstract) join_scalars();
  }
  Call(const Call&) = delete;

  bool all_bool() const {
    return !in_.empty() &&
           std::all_of(in_.begin(), in_.end(), [](const Tensor* t) { return t && t->dtype == DType::b8; });
  }

  void set_attrs(const dvr_attr* given, uint32_t n) {
    if (n) expect(given, "the list of attributes");
    attrs_ = op_.defaults;
    uint64_t set = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const int at = given[i].name ? attr_position(op_, given[i].name) : int(i);
      set_attr(op_, attrs_, at, given[i].value);
      set |= uint64_t{1} << at;
    }
    expect_attrs(op_, set);
  }

  Invocation& invocation() { return inv_; }
  bool shares_operand(const Tensor& t) const {
    return t.storage &&
           std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& x) { return x.storage == t.storage; });
  }

 private:
  static Tensor abstract_tensor(const dvr_tensor& from, const ParamSpec& p) {
    if (from.view.ndim < 0) throw Error(ErrorKind::value, p.name + " has a negative number of axes");
    Tensor t;
    t.set_type(to_dtype(from.view.dtype), nullptr);
    t.set_shape(to_shape(uint32_t(from.view.ndim), from.view.shape));
    return t;
  }

  // An array without axes on a device of kind cpu joins arrays of another device: its value is read.
  void join_scalars() {
    const auto other = std::find_if(tensors_.begin(), tensors_.end(),
                                    [](const Tensor& t) { return t.device && !joins_any_device(t); });
    if (other == tensors_.end()) return;
    Device* const home = other->device;
    for (Tensor& t : tensors_)
      if (joins_any_device(t) && t.device != home) t = as_host_scalar(t);
  }

  const Op& op_;
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> in_;
  Attrs attrs_;
  Invocation inv_;
};

void expect_results(const Op& op, const dvr_tensor* out, uint32_t n_out) {
  if (n_out != op.spec.n_out)
    throw Error(ErrorKind::value, "[" + op.spec.name + "] " + std::to_string(n_out) + " results: expected " +
                                      std::to_string(op.spec.n_out));
  expect(out, "the list of results");
}

void call(const Op& op, Device* device, const dvr_tensor* const* in, uint32_t n_in, const dvr_attr* attrs,
          uint32_t n_attrs, dvr_tensor* out, uint32_t n_out, uint32_t flags) {
  expect_results(op, out, n_out);
  Call c(op, device, in, n_in);
  if (const Op* logical = op_for_bools(op); logical && c.all_bool())
    return call(*logical, device, in, n_in, attrs, n_attrs, out, n_out, flags);
  c.set_attrs(attrs, n_attrs);
  Invocation& inv = c.invocation();
  Tensor made[kMaxOutputs], memory[kMaxOutputs];
  const Tensor* given[kMaxOutputs] = {};
  bool any_given = false;
  for (uint32_t i = 0; i < n_out; ++i) {
    inv.out[i] = &made[i];
    if (!out[i].buffer) continue;
    memory[i] = to_tensor(&out[i], "a given result");
    given[i] = &memory[i], any_given = true;
  }
  inv.infer();
  check_values(inv);
  if (any_given) run_into(inv, given);
  else inv.run();
  for (uint32_t i = 0; i < n_out; ++i) {
    if (given[i]) continue;
    if (!made[i].device) made[i] = materialise(made[i], *inv.device);
    if (flags & DVR_OWN_RESULTS && (!made[i].dense || c.shares_operand(made[i]))) made[i] = compact(made[i]);
  }
  for (uint32_t i = 0; i < n_out; ++i)
    if (!given[i]) put(std::move(made[i]), out[i]);
}

std::vector<const Op*> public_ops() {
  std::vector<const Op*> all = all_ops();
  std::erase_if(all, [](const Op* o) { return o->spec.flags & op_private; });
  return all;
}
}  // namespace
}  // namespace dovetail::api

using namespace dovetail;
using namespace dovetail::api;

uint32_t dvr_ops(const dvr_op** out, uint32_t room) {
  uint32_t n = 0;
  (void)guarded("ops", [&] {
    const std::vector<const Op*> all = public_ops();
    for (uint32_t i = 0; out && i < all.size() && i < room; ++i) out[i] = reinterpret_cast<const dvr_op*>(all[i]);
    n = uint32_t(all.size());
  });
  return n;
}

const dvr_op* dvr_find_op(const char* name) {
  const dvr_op* found = nullptr;
  (void)guarded("find_op", [&] { found = reinterpret_cast<const dvr_op*>(&op(&expect(name, "the name"))); });
  return found;
}

dvr_status dvr_get_op_info(const dvr_op* o, dvr_op_info* out) {
  return guarded("get_op_info", [&] {
    const OpSpec& s = to(o).spec;
    put_info({0, s.version, uint32_t(s.params.size()), s.n_out, s.name.c_str(), s.space.c_str()}, out);
  });
}

dvr_status dvr_get_param_info(const dvr_op* o, uint32_t i, dvr_param_info* out) {
  return guarded("get_param_info", [&] {
    const OpSpec& s = to(o).spec;
    if (i >= s.params.size())
      throw Error(ErrorKind::value, "[" + s.name + "] parameter " + std::to_string(i) + ": expected less than " +
                                        std::to_string(s.params.size()));
    const ParamSpec& p = s.params[i];
    dvr_param_info info{};
    const bool operand = is_operand(p.kind);
    info.role = operand ? DVR_OPERAND : DVR_ATTRIBUTE;
    info.attr_kind = operand ? 0 : attr_kind(p.kind);
    info.optional = operand ? p.optional : p.fallback.kind != AttrDefault::required;
    info.variadic = p.variadic;
    info.name = p.name.c_str();
    put_info(info, out);
  });
}

dvr_status dvr_call(const dvr_op* o, dvr_device* device, const dvr_tensor* const* in, uint32_t n_in,
                    const dvr_attr* attrs, uint32_t n_attrs, dvr_tensor* out, uint32_t n_out, uint32_t flags) {
  return guarded("call", [&] {
    const Op& op = to(o);
    if (flags & ~uint32_t(DVR_OWN_RESULTS))
      throw Error(ErrorKind::value, "flags " + std::to_string(flags) + ": expected DVR_OWN_RESULTS or 0");
    api::call(op, reinterpret_cast<Device*>(device), in, n_in, attrs, n_attrs, out, n_out, flags);
  });
}

dvr_status dvr_infer(const dvr_op* o, const dvr_tensor* const* in, uint32_t n_in, const dvr_attr* attrs,
                     uint32_t n_attrs, dvr_tensor* out, uint32_t n_out) {
  return guarded("infer", [&] {
    const Op* op = &to(o);
    expect_results(*op, out, n_out);
    std::optional<Call> c(std::in_place, *op, nullptr, in, n_in, true);
    if (const Op* logical = op_for_bools(*op); logical && c->all_bool())
      op = logical, c.emplace(*op, nullptr, in, n_in, true);
    c->set_attrs(attrs, n_attrs);
    Tensor made[kMaxOutputs];
    for (uint32_t i = 0; i < n_out; ++i) c->invocation().out[i] = &made[i];
    Plan plan{};
    c->invocation().infer_abstract(plan);
    for (uint32_t i = 0; i < n_out; ++i) {
      put_view(made[i], out[i]);
      out[i].view.data = nullptr, out[i].buffer = nullptr;
    }
  });
}

dvr_status dvr_nonzero(const dvr_tensor* x, dvr_tensor* out, uint32_t n_out) {
  return guarded("nonzero", [&] {
    const Tensor t = to_tensor(x, "the array");
    if (t.rank() && n_out != uint32_t(t.rank()))
      throw Error(ErrorKind::value, std::to_string(n_out) + " results: expected one for each of " +
                                        std::to_string(t.rank()) + " axes");
    if (t.rank()) expect(out, "the list of results");
    std::vector<Tensor> found = nonzero(t);
    for (uint32_t i = 0; i < n_out; ++i) put(std::move(found[i]), out[i]);
  });
}

dvr_status dvr_unique(const dvr_tensor* x, dvr_tensor* values, dvr_tensor* indices, dvr_tensor* inverse,
                      dvr_tensor* counts) {
  return guarded("unique", [&] {
    Unique u = unique(to_tensor(x, "the array"), !inverse && !counts);
    const auto give = [](Tensor& t, dvr_tensor* out) {
      if (out) put(std::move(t), *out);
    };
    give(u.values, values), give(u.indices, indices), give(u.inverse, inverse), give(u.counts, counts);
  });
}
