// dovetail/codegen_functions.hpp - what an elementwise node is in C: an expression of its operands, or a call of
// one of the device's functions. The first part of codegen_source.hpp, which explains it.
#ifndef DOVETAIL_CODEGEN_FUNCTIONS_HPP
#define DOVETAIL_CODEGEN_FUNCTIONS_HPP

#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "dovetail/codegen.hpp"
#include "dovetail/types.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace codegen {
// How a device spells what C has no words for, or other words. Text must be compiled without contraction of
// a product and a sum, and with IEEE 754's division.
struct Dialect {
  const char* head = "";          // of the text: pragmas, definitions of the functions
  const char* kernel = "void";    // before the name of a kernel
  const char* global = "";        // before the type of a pointer to the device's memory
  const char* shared = "static";  // before an array that the threads of a block share
  const char* function = "";      // before the declaration of one of the functions
  const char* int64 = "long";     // a type of 64 bits
  // Expressions: which thread of its block this is, which block of how many.
  const char *thread = "0", *block = "0", *blocks = "1";
  const char* barrier = "";  // a statement by which the threads of a block wait for each other
  uint32_t threads = 1;      // of a block: a power of two
};

// ---- types -----------------------------------------------------------------------------------------------------

inline bool is_bool(DLDataType t) { return t.code == DVT_BOOL; }
// Floats of which registers have float32. In memory they are unsigned integers.
inline bool is_narrow(DLDataType t) { return types::is_float(t) && t.bits < 32; }
inline DLDataType computed(DLDataType t) { return is_narrow(t) ? f32 : t; }
inline bool is_known(DLDataType t) {
  return t.lanes == 1 && (types::is_float(t) || is_bool(t) || t.code == DVT_INT || t.code == DVT_UINT) &&
         (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64);
}

inline std::string c_type(const Dialect& d, DLDataType t) {
  if (types::is_float(t) && t.bits == 64) return "double";
  if (types::is_float(t) && t.bits == 32) return "float";
  const bool is_signed = t.code == DVT_INT;
  const char* const sign = is_signed ? "" : "unsigned ";
  switch (t.bits) {
    case 8: return is_signed ? "signed char" : "unsigned char";
    case 16: return std::string(sign) + "short";
    case 32: return std::string(sign) + "int";
    default: return std::string(sign) + d.int64;
  }
}

// ---- functions -------------------------------------------------------------------------------------------------

// The device's functions that a text calls, each declared once. Their names are dvt_<op>_<type>, of elements as
// registers have them: dvt_exp_f32. Those of fp16, bf16 and float8 are in f32.
//   dvt_load_<type>(bits)         a narrow float as float, and
//   dvt_store_<type>(x)           the bits of the nearest narrow float
//   dvt_convert_<from>_<to>(x)    as dvt::convert; the result of conversions to narrow floats is float again
class Functions {
 public:
  explicit Functions(const Dialect& d) : dialect_(d) {}

  std::string call(const std::string& name, DLDataType result, DLDataType operand,
                   const std::vector<std::string>& operands) {
    std::string declaration = std::string(dialect_.function) + (*dialect_.function ? " " : "") +
                              c_type(dialect_, result) + " dvt_" + name + "(",
                text = "dvt_" + name + "(";
    for (size_t i = 0; i < operands.size(); ++i) {
      declaration += (i ? ", " : "") + c_type(dialect_, operand);
      text += (i ? ", " : "") + operands[i];
    }
    declarations_[name] = declaration + ");\n";
    return text + ")";
  }

  // To and from registers.
  std::string load(DLDataType t, const std::string& x) {
    if (is_narrow(t)) return call(std::string("load_") + types::type_name(t), f32, t, {x});
    return x;
  }
  std::string store(DLDataType t, const std::string& x) {
    if (is_narrow(t)) return call(std::string("store_") + types::type_name(t), types::unsigned_of(t), f32, {x});
    return x;
  }
  std::string round(DLDataType t, const std::string& x) { return load(t, store(t, x)); }

  // An element in a register as one of another type, rounded to it.
  std::string convert(DLDataType from, DLDataType to, const std::string& x) {
    const DLDataType has = computed(from), wanted = computed(to);
    const bool calls = (is_narrow(to) && !same(has, f32) && !is_bool(from)) ||
                       (types::is_float(from) && !types::is_float(to) && !is_bool(to));
    if (same(from, to)) return x;
    if (calls) {
      const std::string names = std::string(types::type_name(has)) + "_" + types::type_name(to);
      return call("convert_" + names, wanted, has, {x});
    }
    if (is_narrow(to)) return is_bool(from) ? "(float)" + x : round(to, x);
    if (same(has, wanted)) return x;
    if (is_bool(to)) return "(unsigned char)(" + x + " != 0)";
    return "(" + c_type(dialect_, wanted) + ")" + x;
  }

  std::string declarations() const {
    std::string text;
    for (const auto& [name, declaration] : declarations_) text += declaration;
    return text;
  }
  const Dialect& dialect() const { return dialect_; }

 private:
  const Dialect dialect_;
  std::map<std::string, std::string> declarations_;
};

// ---- ops -------------------------------------------------------------------------------------------------------

// Expressions of the operands $0, $1, $2; $U0 is operand 0 as an unsigned integer of at least 32 bits, which wraps.
// "": a call of the op's function; NULL: not for these types.
struct OpText {
  const char* op;
  uint32_t operands;
  bool makes_bool;  // else the operands' type
  const char *floats, *integers, *booleans;
  bool has_parameter = false;  // attribute 0 is a number, which follows the operands
};
#define DVT_CODEGEN_FUNCTION(op, operands) {op, operands, false, "", nullptr, nullptr}
inline const auto& all_ops() {
  static const OpText all[] = {
      {"add", 2, false, "$0 + $1", "$U0 + $U1", nullptr},
      {"subtract", 2, false, "$0 - $1", "$U0 - $U1", nullptr},
      {"multiply", 2, false, "$0 * $1", "$U0 * $U1", nullptr},
      {"divide", 2, false, "$0 / $1", nullptr, nullptr},
      {"negative", 1, false, "-$0", "0 - $U0", nullptr},
      {"square", 1, false, "$0 * $0", "$U0 * $U0", nullptr},
      {"reciprocal", 1, false, "1 / $0", nullptr, nullptr},
      {"maximum", 2, false, "$0 > $1 || $0 != $0 ? $0 : $1", "$0 > $1 ? $0 : $1", "$0 | $1"},
      {"minimum", 2, false, "$0 < $1 || $0 != $0 ? $0 : $1", "$0 < $1 ? $0 : $1", "$0 & $1"},
      {"relu", 1, false, "$0 > 0 || $0 != $0 ? $0 : 0", nullptr, nullptr},
      {"abs", 1, false, "", "", nullptr},
      {"sign", 1, false, "", "", nullptr},
      {"floor", 1, false, "", "$0", nullptr},
      {"pow", 2, false, "", "", nullptr},
      {"quotient", 2, false, nullptr, "", nullptr},
      {"floor_divide", 2, false, "", "", nullptr},
      {"remainder", 2, false, "", "", nullptr},
      {"bitwise_and", 2, false, nullptr, "$0 & $1", "$0 & $1"},
      {"bitwise_or", 2, false, nullptr, "$0 | $1", "$0 | $1"},
      {"bitwise_xor", 2, false, nullptr, "$0 ^ $1", "$0 ^ $1"},
      {"bitwise_left_shift", 2, false, nullptr, "", nullptr},
      {"bitwise_right_shift", 2, false, nullptr, "", nullptr},
      {"equal", 2, true, "$0 == $1", "$0 == $1", "$0 == $1"},
      {"not_equal", 2, true, "$0 != $1", "$0 != $1", "$0 != $1"},
      {"less", 2, true, "$0 < $1", "$0 < $1", "$0 < $1"},
      {"less_equal", 2, true, "$0 <= $1", "$0 <= $1", "$0 <= $1"},
      {"greater", 2, true, "$0 > $1", "$0 > $1", "$0 > $1"},
      {"greater_equal", 2, true, "$0 >= $1", "$0 >= $1", "$0 >= $1"},
      {"logical_and", 2, true, "($0 != 0) & ($1 != 0)", "($0 != 0) & ($1 != 0)", "$0 & $1"},
      {"logical_or", 2, true, "($0 != 0) | ($1 != 0)", "($0 != 0) | ($1 != 0)", "$0 | $1"},
      {"logical_xor", 2, true, "($0 != 0) != ($1 != 0)", "($0 != 0) != ($1 != 0)", "$0 ^ $1"},
      {"logical_not", 1, true, "$0 == 0", "$0 == 0", "$0 == 0"},
      {"isnan", 1, true, "$0 != $0", nullptr, nullptr},
      {"isinf", 1, true, "", nullptr, nullptr},
      {"isfinite", 1, true, "", nullptr, nullptr},
      {"leaky_relu", 1, false, "$0 < 0 ? $0 * $1 : $0", nullptr, nullptr, true},
      {"elu", 1, false, "", nullptr, nullptr, true},
      {"softplus", 1, false, "", nullptr, nullptr, true},
      DVT_CODEGEN_FUNCTION("exp", 1),
      DVT_CODEGEN_FUNCTION("expm1", 1),
      DVT_CODEGEN_FUNCTION("log", 1),
      DVT_CODEGEN_FUNCTION("log1p", 1),
      DVT_CODEGEN_FUNCTION("exp2", 1),
      DVT_CODEGEN_FUNCTION("log2", 1),
      DVT_CODEGEN_FUNCTION("log10", 1),
      DVT_CODEGEN_FUNCTION("sqrt", 1),
      DVT_CODEGEN_FUNCTION("rsqrt", 1),
      DVT_CODEGEN_FUNCTION("erf", 1),
      DVT_CODEGEN_FUNCTION("erfc", 1),
      DVT_CODEGEN_FUNCTION("sin", 1),
      DVT_CODEGEN_FUNCTION("cos", 1),
      DVT_CODEGEN_FUNCTION("tan", 1),
      DVT_CODEGEN_FUNCTION("asin", 1),
      DVT_CODEGEN_FUNCTION("acos", 1),
      DVT_CODEGEN_FUNCTION("atan", 1),
      DVT_CODEGEN_FUNCTION("sinh", 1),
      DVT_CODEGEN_FUNCTION("cosh", 1),
      DVT_CODEGEN_FUNCTION("tanh", 1),
      DVT_CODEGEN_FUNCTION("asinh", 1),
      DVT_CODEGEN_FUNCTION("acosh", 1),
      DVT_CODEGEN_FUNCTION("atanh", 1),
      DVT_CODEGEN_FUNCTION("ceil", 1),
      DVT_CODEGEN_FUNCTION("trunc", 1),
      DVT_CODEGEN_FUNCTION("round", 1),
      DVT_CODEGEN_FUNCTION("sigmoid", 1),
      DVT_CODEGEN_FUNCTION("silu", 1),
      DVT_CODEGEN_FUNCTION("mish", 1),
      DVT_CODEGEN_FUNCTION("selu", 1),
      DVT_CODEGEN_FUNCTION("logsigmoid", 1),
      DVT_CODEGEN_FUNCTION("hardsigmoid", 1),
      DVT_CODEGEN_FUNCTION("hardswish", 1),
      DVT_CODEGEN_FUNCTION("gelu", 1),
      DVT_CODEGEN_FUNCTION("hypot", 2),
      DVT_CODEGEN_FUNCTION("logaddexp", 2),
      DVT_CODEGEN_FUNCTION("atan2", 2),
      DVT_CODEGEN_FUNCTION("copysign", 2),
  };
  return all;
}
#undef DVT_CODEGEN_FUNCTION

inline const OpText* find_op(const char* op) {
  for (const OpText& known : all_ops())
    if (!std::strncmp(op, "dvt.", 4) && !std::strcmp(op + 4, known.op)) return &known;
  return nullptr;
}

inline const char* text_for(const OpText& op, DLDataType t) {
  return is_bool(t) ? op.booleans : types::is_float(t) ? op.floats : op.integers;
}
inline bool has_text(const OpText& op, DLDataType t) {
  return text_for(op, t) && (t.code != DVT_UINT || std::strcmp(op.op, "abs"));
}
inline bool is_op(const dvt_node& node, const char* op) {
  return !std::strncmp(node.op, "dvt.", 4) && !std::strcmp(node.op + 4, op);
}

// Of gelu: which function it is; NULL: of another value of the attribute.
inline const char* gelu_function(const dvt_node& node) {
  if (!node.n_attr || node.attr[0].kind == DVT_A_NONE) return "gelu";
  const dvt_attr& a = node.attr[0];
  if (a.kind != DVT_A_STR) return nullptr;
  const std::string text(a.v.s, a.count);
  return text == "none" ? "gelu" : text == "tanh" ? "gelu_tanh" : nullptr;
}

inline double parameter_of(const dvt_node& node) {
  return node.attr[0].kind == DVT_A_F64 ? node.attr[0].v.f : double(node.attr[0].v.i);
}
inline bool is_finite_number(const dvt_node& node) {
  return node.n_attr == 1 && (node.attr[0].kind == DVT_A_F64 || node.attr[0].kind == DVT_A_I64) &&
         std::isfinite(parameter_of(node));
}
// A number as C writes it, rounded to a type of registers.
inline std::string literal(DLDataType t, double x) {
  char text[40];
  std::snprintf(text, sizeof text, t.bits == 64 ? "%a" : "%af", t.bits == 64 ? x : double(float(x)));
  return std::string("(") + text + ")";
}

// The type that the node computes in. Operands of other types are converted to it; where the result is a bool their
// common type is not known, and they must agree.
inline DLDataType type_of_node(const dvt_program& p, const dvt_node& node) {
  const DLDataType result = p.values[node.out[0]].dtype;
  const OpText* const op = find_op(node.op);
  return op && op->makes_bool ? computed(p.values[node.in[0]].dtype) : result;
}

// NULL if there is text for the node; else why there is none. In a program with DVT_P_ROUND_EACH, which must have
// the bits of eager calls, sums and products of floats are refused: their order is the kernels' own.
inline const char* unknown(const dvt_program& p, const dvt_node& node) {
  static const char* const types = "no code for these dtypes";
  const DLDataType result = p.values[node.out[0]].dtype;
  bool known = is_known(result);
  for (uint32_t i = 0; i < node.n_in; ++i)
    if (node.in[i] != none) known = known && is_known(p.values[node.in[i]].dtype);
  const bool all_given = std::all_of(node.in, node.in + node.n_in, [](uint32_t v) { return v != none; });
  if (!known || node.n_in == 0 || node.in[0] == none) return types;
  if (is_op(node, "astype")) return nullptr;
  if (is_op(node, "clip")) return node.n_in == 3 && !is_bool(result) ? nullptr : types;
  if (!all_given) return "an operand is absent";
  if (is_op(node, "where")) return node.n_in == 3 && is_bool(p.values[node.in[0]].dtype) ? nullptr : types;
  if (is_reduction(node)) {
    const bool logical = is_op(node, "any") || is_op(node, "all"),
               extreme = is_op(node, "max") || is_op(node, "min");
    const DLDataType x = p.values[node.in[0]].dtype;
    if (logical) return is_bool(result) ? nullptr : types;
    if (is_bool(result) ? !extreme : is_op(node, "mean") && !types::is_float(result)) return types;
    if (extreme && !same(x, result)) return types;
    if (!extreme && types::is_float(result) && p.flags & DVT_P_ROUND_EACH)
      return "a sum in another order than the kernel's has other bits";
    return nullptr;
  }
  const OpText* const op = find_op(node.op);
  if (!op) return "no code for this op";
  const bool attributes_known = is_op(node, "gelu") ? gelu_function(node) != nullptr
                                : op->has_parameter ? is_finite_number(node)
                                                    : node.n_attr == 0;
  if (!attributes_known) return "no code for these attributes";
  const DLDataType t = type_of_node(p, node);
  if (node.n_in != op->operands || !has_text(*op, t)) return types;
  for (uint32_t i = 0; op->makes_bool && i < node.n_in; ++i)
    if (!same(computed(p.values[node.in[i]].dtype), t)) return types;
  return op->makes_bool && !is_bool(result) ? types : nullptr;
}

// ---- expressions -----------------------------------------------------------------------------------------------

// `text` with its operands.
inline std::string filled_in(const Dialect& d, const char* text, DLDataType t,
                             const std::vector<std::string>& operands) {
  const DLDataType wraps{DVT_UINT, uint8_t(std::max<unsigned>(t.bits, 32)), 1};
  std::string out;
  for (const char* c = text; *c; ++c) {
    if (*c != '$') {
      out += *c;
      continue;
    }
    if (*++c == 'U') out += "(" + c_type(d, wraps) + ")", ++c;
    out += operands[size_t(*c - '0')];
  }
  return out;
}

// The value of a node that is neither a reduction nor `unknown`, of its operands, which are names of variables
// ("" for an absent one), as its type in registers.
inline std::string expression(Functions& functions, const dvt_program& p, const dvt_node& node,
                              std::vector<std::string> operands) {
  const DLDataType result = p.values[node.out[0]].dtype, t = type_of_node(p, node);
  const auto type = [&](uint32_t i) { return p.values[node.in[i]].dtype; };
  if (is_op(node, "astype")) return functions.convert(type(0), result, operands[0]);
  const OpText* const op = find_op(node.op);
  const bool is_where = is_op(node, "where");
  for (uint32_t i = is_where; i < node.n_in; ++i)
    if (node.in[i] != none && !(op && op->makes_bool)) operands[i] = functions.convert(type(i), t, operands[i]);
  if (op && op->has_parameter) operands.push_back(literal(computed(t), parameter_of(node)));
  const Dialect& d = functions.dialect();
  std::string text;
  if (is_where) {
    text = operands[0] + " ? " + operands[1] + " : " + operands[2];
  } else if (is_op(node, "clip")) {
    text = operands[0];
    for (uint32_t i = 1; i < 3; ++i)
      if (node.in[i] != none)
        text = "(" +
               filled_in(d, text_for(*find_op(i == 1 ? "dvt.maximum" : "dvt.minimum"), t), t, {text, operands[i]}) +
               ")";
  } else if (const char* const known = text_for(*op, t); *known) {
    text = filled_in(d, known, t, operands);
  } else {
    const std::string name = is_op(node, "gelu") ? gelu_function(node) : op->op;
    return functions.call(name + "_" + types::type_name(computed(t)), computed(result), computed(t), operands);
  }
  return types::is_float(result) ? text : "(" + c_type(d, result) + ")(" + text + ")";
}
}  // namespace codegen
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_CODEGEN_FUNCTIONS_HPP
