// One call of a Dovetail op with torch's tensors, and what happens where Dovetail does not serve it.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/where_ops.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime.hpp"

namespace dovetail_torch {

template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&from)[n]) { std::copy_n(from, n, text); }
};
// The op of that name, looked up once.
template <Name name>
const dvr_op* op() {
  static const dvr_op* const found = dvr_find_op(name.text);
  return found;
}

void count_call();
bool counts_calls();

// in() and number() add operands, set() attributes; over(), into() and make() run the call. They return false where
// Dovetail does not serve it; the caller then falls back. Other failures are raised.
class Call {
 public:
  explicit Call(const dvr_op* op) : op_(op), served_(op != nullptr) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // A tensor of the CPU without axes is a number, as in all of torch's elementwise ops. Undefined: an absent
  // operand.
  Call& in(const at::Tensor& t);
  Call& in(const at::Tensor& t, at::ScalarType as);
  Call& in(const std::optional<at::Tensor>& t) { return in(t ? *t : at::Tensor()); }
  // Positions that count from 0: negative ones, which the runtime counts from the end, raise IndexError.
  Call& positions(const at::Tensor& t);
  Call& absent() { return in(at::Tensor()); }
  Call& number(const at::Scalar& value);
  Call& number(const std::optional<at::Scalar>& value) { return value ? number(*value) : absent(); }

  // An array or text must live until the call has run.
  Call& set(const char* name, int64_t value) { return put(name, {DVT_A_I64, 1, {.i = value}}); }
  Call& set(const char* name, double value) { return put(name, {DVT_A_F64, 1, {.f = value}}); }
  Call& set(const char* name, bool value) { return put(name, {DVT_A_BOOL, 1, {.i = value}}); }
  Call& set(const char* name, const char* value) {
    return put(name, {DVT_A_STR, uint32_t(strlen(value)), {.s = value}});
  }
  Call& set(const char* name, c10::IntArrayRef value) {
    return put(name, {DVT_A_I64S, uint32_t(value.size()), {.is = value.data()}});
  }
  Call& set(const char* name, at::ScalarType value);
  template <class T>
  Call& set(const char* name, const std::optional<T>& value) {
    return value ? set(name, *value) : *this;
  }
  Call& on(c10::DeviceIndex index) { return device_ = index, *this; }

  // Results in memory that is there, of the op's shapes and dtypes.
  template <class... T>
  bool over(const T&... outs) {
    dvr_tensor results[sizeof...(outs)];
    int k = 0;
    return served_ && (given(outs, results[k++]) && ...) && run(results, sizeof...(outs));
  }
  // The same, but one without elements gets the result's shape first, as torch does it.
  template <class... T>
  bool into(const T&... outs) {
    if (over(outs...)) [[likely]]
      return true;
    if constexpr (sizeof...(outs) == 1) return into_empty(outs...);
    return false;
  }
  // New row-major results.
  template <class... T>
  bool make(T&... outs) {
    dvr_tensor results[sizeof...(outs)];
    for (dvr_tensor& r : results) r.buffer = nullptr;
    if (!served_ || device_ < 0 || !run(results, sizeof...(outs))) return false;
    int k = 0;
    ((outs = wrap(results[k++], device_)), ...);
    return true;
  }

 private:
  dvr_tensor& next();
  Call& put(const char* name, dvt_attr value);
  bool given(const at::Tensor& out, dvr_tensor& to) const { return out.is_privateuseone() && describe(out, to); }
  bool run(dvr_tensor* results, uint32_t n);
  bool into_empty(const at::Tensor& out);

  static constexpr size_t kNear = 6;
  const dvr_op* op_;
  bool served_;
  c10::DeviceIndex device_ = -1;
  size_t n_attrs_ = 0;
  dvr_attr attrs_[6];
  c10::SmallVector<const dvr_tensor*, kNear> in_;
  dvr_tensor near_[kNear];  // numbers point into themselves, so entries never move
  std::vector<std::unique_ptr<dvr_tensor>> far_;
  c10::SmallVector<at::Tensor, 2> kept_;  // operands that were cast or resolved
};

// torch's own error where a tensor is on another device.
void expect_same_device(c10::Device device, const at::Tensor& t);

// ---- where Dovetail does not serve a call
void fall_back_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// The operator Aten of at::_ops, by torch's kernel for the CPU.
template <class Aten, class... Args>
decltype(auto) fall_back(Args&&... args) {
  return at::native::call_fallback_fn<&fall_back_boxed, Aten>::call(std::forward<Args>(args)...);
}
template <class Aten, class... Args>
decltype(auto) fall_back_symint(Args&&... args) {
  return at::native::call_fallback_fn_symint<&fall_back_boxed, Aten>::call(std::forward<Args>(args)...);
}

// ---- registration by the operator's own name
template <class Aten, class Function>
void implement(torch::Library& m, Function* function) {
  std::string name = Aten::name;
  if (*Aten::overload_name) name += std::string(".") + Aten::overload_name;
  m.impl(name.c_str(), function);
}

// torch's form of a structured operator: it infers the result and calls the form with `out`.
constexpr c10::DispatchKeySet kStructured(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);

// ---- what many ops need
using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;
using Axes = c10::SmallVector<int64_t, 6>;

// What t.item() gives, without asking torch's dispatcher for what a Python number holds.
Scalar value_of(const Tensor& t);
inline bool is_one(const Scalar& s) { return !s.isComplex() && s.toDouble() == 1; }
inline bool is_real_float(const Tensor& t) { return at::isFloatingType(t.scalar_type()); }
inline bool given(const OptionalTensor& t) { return t && t->defined(); }
// a where the mask is true, else b.
inline Tensor select_by(const Tensor& mask, const Tensor& a, const Tensor& b) {
  return at::_ops::where_self::call(mask, a, b);
}
// The dtype in which an op of floats computes: integers are cast to the result's dtype.
inline at::ScalarType compute_dtype(at::ScalarType common, const Tensor& out) {
  return at::isFloatingType(out.scalar_type()) && c10::isIntegralType(common, true) ? out.scalar_type() : common;
}
// Ascending axes from 0; all of them where none are named.
Axes axes_of(int64_t ndim, at::OptionalIntArrayRef dim);
// Gives an `out` of an op that torch does not size itself the shape of the result.
void fit(const Tensor& out, c10::IntArrayRef size);
// Writes a result into the caller's `out`, which gets its shape and keeps its dtype.
Tensor& store(const Tensor& result, Tensor& out);

}  // namespace dovetail_torch
