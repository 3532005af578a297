// One call of a shape rule without a device: an op made for the test, its parameters in the order of the
// builder calls.
#pragma once
#include <deque>
#include <limits>

#include "../check.hpp"
#include "dispatch/tensor.hpp"
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
using Ints = std::vector<int64_t>;

struct Call {
  Op op;
  std::deque<Tensor> operands;
  std::vector<const TensorType*> in;
  Attrs attrs;
  DType compute[kMaxInputs]{}, result[kMaxOutputs]{};
  Tensor outs[kMaxOutputs];
  TensorType* out[kMaxOutputs];
  uint64_t work = 0;

  Call(const char* name, const char* shape, const char* dtype = "promote") {
    op.spec.name = name, op.spec.shape = shape, op.spec.dtype = dtype;
    op.shape = rules::shape_rule(shape).rule;
    op.dtype = rules::dtype_rule(dtype).rule;
    for (int i = 0; i < kMaxOutputs; ++i) out[i] = &outs[i];
  }

  Call(const Call&) = delete;  // `in` points into it

  // ---- operands
  Call& operand(const char* name, const Tensor& t, ParamKind kind = ParamKind::value) {
    param({.name = name, .kind = kind});
    ++op.n_in;
    in.push_back(&operands.emplace_back(t));
    return *this;
  }
  Call& x(const char* name, const Ints& shape, DType t = DType::f32, ParamKind kind = ParamKind::value) {
    Tensor made;
    made.set_type(t, nullptr);
    made.set_shape(shape);
    return operand(name, made, kind);
  }
  Call& index(const char* name, const Ints& shape) { return x(name, shape, DType::i64, ParamKind::index); }
  Call& absent(const char* name, ParamKind kind = ParamKind::value) {
    param({.name = name, .kind = kind, .optional = true});
    ++op.n_in;
    in.push_back(nullptr);
    return *this;
  }
  Call& variadic(const char* name, const std::vector<Ints>& shapes, DType t = DType::f32) {
    param({.name = name, .kind = ParamKind::value, .variadic = true});
    ++op.n_in;
    op.variadic = true;
    for (const Ints& s : shapes) {
      Tensor& made = operands.emplace_back();
      made.set_type(t, nullptr);
      made.set_shape(s);
      in.push_back(&made);
    }
    return *this;
  }

  // ---- attributes
  Call& none(const char* name, ParamKind kind = ParamKind::i64s) {
    return attr(name, kind, {DVT_A_NONE, 0, {.raw = 0}});
  }
  Call& i64(const char* name, int64_t v) { return attr(name, ParamKind::i64, {DVT_A_I64, 1, {.i = v}}); }
  Call& f64(const char* name, double v) { return attr(name, ParamKind::f64, {DVT_A_F64, 1, {.f = v}}); }
  Call& flag(const char* name, bool v) { return attr(name, ParamKind::boolean, {DVT_A_BOOL, 1, {.i = v}}); }
  Call& scalar(const char* name, dvt_attr v) { return attr(name, ParamKind::scalar, v); }
  Call& dtype(DType t) {
    op.dtype_attr = op.n_attr;
    if (t == DType::none) return none("dtype", ParamKind::dtype);
    return attr("dtype", ParamKind::dtype, {DVT_A_DTYPE, 1, {.dt = info(t).dl}});
  }
  Call& str(const char* name, const char* s) {
    return attr(name, ParamKind::str, {DVT_A_STR, uint32_t(std::strlen(s)), {.s = s}});
  }
  // Owned by the caller, as long ones are, so that rules have to copy it.
  Call& ints(const char* name, const Ints& v) {
    kept.push_back(v);
    const Ints& own = kept.back();
    return attr(name, ParamKind::i64s, {DVT_A_I64S, uint32_t(own.size()), {.is = own.data()}});
  }

  // ---- results
  Inference inference() { return {op, in.data(), int(in.size()), attrs, compute, result, out}; }
  Call& infer() {
    Inference inv = inference();
    rules::infer_dtypes(inv, compute, result);
    op.shape(inv);
    work = inv.work;
    return *this;
  }
  // The shape after the rule ran twice: normalising must be idempotent.
  std::string shape() {
    infer();
    const std::string once = to_string(outs[0].shape()), attrs_once = attr_text();
    infer();
    CHECK_EQ(to_string(outs[0].shape()), once);
    CHECK_EQ(attr_text(), attrs_once);
    return once;
  }
  std::string attr_text() const {
    std::string text;
    for (int i = 0; i < op.n_attr; ++i) {
      const dvt_attr& a = attrs.at[i];
      text += std::to_string(a.kind) + ":";
      text += a.kind == DVT_A_I64S ? to_string(attrs.i64s(i)) : std::to_string(a.v.i);
      text += " ";
    }
    return text;
  }
  std::string list(const char* name) { return to_string(attrs.i64s(rules::attr(inference(), name))); }
  int64_t value(const char* name) { return attrs.i64(rules::attr(inference(), name)); }
  double real(const char* name) { return attrs.f64(rules::attr(inference(), name)); }
  bool is_none(const char* name) { return !attrs.given(rules::attr(inference(), name)); }
  void fails(ErrorKind kind, const std::string& text, const char* file, int line) {
    try {
      infer();
    } catch (const Error& e) {
      const std::string got = e.what();
      check::that(
          e.kind == kind && got.find(text) != std::string::npos && got.starts_with("[" + op.spec.name + "] "), file,
          line, "threw kind " + std::to_string(int(e.kind)) + " '" + got + "', expected '" + text + "'");
      return;
    }
    check::that(false, file, line, "gave " + to_string(outs[0].shape()) + ", expected '" + text + "'");
  }

 private:
  std::deque<Ints> kept;
  void param(ParamSpec p) { op.spec.params.push_back(std::move(p)); }
  Call& attr(const char* name, ParamKind kind, dvt_attr a) {
    param({.name = name, .kind = kind});
    if (op.spec.params.back().name == "axis") op.axis_attr = op.n_attr;
    if (op.spec.params.back().name == "keepdims") op.keepdims_attr = op.n_attr;
    attrs.at[op.n_attr++] = a;
    return *this;
  }
};

#define CHECK_FAILS(call, kind, text) (call).fails(ErrorKind::kind, text, __FILE__, __LINE__)
#define CHECK_SHAPE(call, expected) check::equal((call).shape(), std::string(expected), __FILE__, __LINE__, #call)
}  // namespace dovetail
