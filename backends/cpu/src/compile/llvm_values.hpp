// Values of a generated loop as LLVM IR: an instruction of a group on vectors of a step's elements.
#pragma once
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "compile/group.hpp"

namespace dovetail::cpu::llvm {
// How an element is computed with. fp16 and bf16 are float in tiles; bools are bytes of 0 and 1.
enum class Kind { floating, is_signed, is_unsigned, boolean, other };
inline Kind kind_of(const Operand& x) {
  const DLDataType t = x.type;
  if (x.half != Half::no || (t.code == DVT_FLOAT && t.bits >= 32)) return Kind::floating;
  if (t.code == DVT_INT) return Kind::is_signed;
  if (t.code == DVT_UINT) return Kind::is_unsigned;
  return t.code == DVT_BOOL ? Kind::boolean : Kind::other;
}
inline bool is_float(const Operand& x) { return kind_of(x) == Kind::floating; }
inline std::string type_of(const Operand& x) {
  if (is_float(x)) return x.bytes == 8 ? "double" : "float";
  return "i" + std::to_string(8 * x.bytes);
}

// An operation that is one instruction of LLVM's for each kind of operand; nullptr: it is none.
struct Operation {
  const char *op, *floats, *signs, *unsigned_integers, *booleans;
};
inline constexpr Operation operations[] = {
    {"dvt.add", "fadd", "add", "add", nullptr},          {"dvt.subtract", "fsub", "sub", "sub", nullptr},
    {"dvt.multiply", "fmul", "mul", "mul", nullptr},     {"dvt.divide", "fdiv", nullptr, nullptr, nullptr},
    {"dvt.bitwise_and", nullptr, "and", "and", "and"},   {"dvt.bitwise_or", nullptr, "or", "or", "or"},
    {"dvt.bitwise_xor", nullptr, "xor", "xor", "xor"},   {"dvt.logical_and", nullptr, nullptr, nullptr, "and"},
    {"dvt.logical_or", nullptr, nullptr, nullptr, "or"}, {"dvt.logical_xor", nullptr, nullptr, nullptr, "xor"},
};
inline constexpr Operation comparisons[] = {
    {"dvt.equal", "fcmp oeq", "icmp eq", "icmp eq", "icmp eq"},
    {"dvt.not_equal", "fcmp une", "icmp ne", "icmp ne", "icmp ne"},
    {"dvt.less", "fcmp olt", "icmp slt", "icmp ult", "icmp ult"},
    {"dvt.less_equal", "fcmp ole", "icmp sle", "icmp ule", "icmp ule"},
    {"dvt.greater", "fcmp ogt", "icmp sgt", "icmp ugt", "icmp ugt"},
    {"dvt.greater_equal", "fcmp oge", "icmp sge", "icmp uge", "icmp uge"},
};
template <size_t n>
const char* find(const Operation (&table)[n], const char* op, Kind kind) {
  for (const Operation& o : table)
    if (!std::strcmp(o.op, op))
      return kind == Kind::floating      ? o.floats
             : kind == Kind::is_signed   ? o.signs
             : kind == Kind::is_unsigned ? o.unsigned_integers
             : kind == Kind::boolean     ? o.booleans
                                         : nullptr;
  return nullptr;
}
inline bool is(const Instruction& step, const char* op) { return !std::strcmp(step.op, op); }

// Functions of floats that are one instruction; those of the schema leave integers as they are.
struct Intrinsic {
  const char *op, *function;
};
inline constexpr Intrinsic roundings[] = {
    {"dvt.floor", "floor"}, {"dvt.ceil", "ceil"}, {"dvt.trunc", "trunc"}, {"dvt.round", "roundeven"}};
inline const char* rounding_of(const char* op) {
  for (const Intrinsic& i : roundings)
    if (!std::strcmp(i.op, op)) return i.function;
  return nullptr;
}

inline std::string vector_of(int n, const std::string& element) {
  return std::string("<") + std::to_string(n) + " x " + element + ">";
}

// A number as LLVM writes it: of a float, too, the bits of a double.
inline std::string constant(double x) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016" PRIX64, std::bit_cast<uint64_t>(x));
  return text;
}

// Whether instructions of LLVM's compute it.
inline bool is_written(const Instruction& step, Kind kind) {
  if (is(step, "dvt.astype")) return true;
  if (find(operations, step.op, kind) || find(comparisons, step.op, kind)) return true;
  constexpr const char *any[] = {"dvt.maximum", "dvt.minimum"},
                       *floats[] = {"dvt.sqrt",  "dvt.rsqrt", "dvt.reciprocal",
                                    "dvt.isnan", "dvt.isinf", "dvt.isfinite"},
                       *integers[] = {"dvt.bitwise_left_shift", "dvt.bitwise_right_shift"},
                       *numbers[] = {"dvt.negative", "dvt.abs", "dvt.square", "dvt.relu", "dvt.sign", "dvt.clip"};
  const auto among = [&](const auto& list) {
    return std::any_of(std::begin(list), std::end(list), [&](const char* op) { return is(step, op); });
  };
  if (among(any)) return true;
  if (is(step, "dvt.where") || is(step, "dvt.logical_not")) return kind == Kind::boolean;
  if (is(step, "dvt.bitwise_invert")) return kind != Kind::floating;
  if (rounding_of(step.op)) return kind != Kind::boolean;
  if (kind == Kind::floating) return among(floats) || among(numbers);
  return kind != Kind::boolean && (among(integers) || among(numbers));
}

// Prints instructions; each names its result.
class ValueWriter {
 public:
  // `n`: the elements of a step.
  ValueWriter(const Group& group, int n) : group_(group), n_(n) {}

 protected:
  void line(const std::string& s) { text_ += "  " + s + "\n"; }
  std::string made(const std::string& what) {
    const std::string name = "%v" + std::to_string(n_names_++);
    line(name + " = " + what);
    return name;
  }
  std::string vector_of(const std::string& element) const { return llvm::vector_of(n_, element); }
  // `n` lanes from `first` on, each `step` behind the one before: what a shuffle takes.
  static std::string lanes(int first, int n, int step = 1) {
    std::string list;
    for (int i = 0; i < n; ++i) list += (i ? ", i32 " : "i32 ") + std::to_string(first + i * step);
    return llvm::vector_of(n, "i32") + " <" + list + ">";
  }
  std::string vector(const Operand& x) const { return vector_of(type_of(x)); }
  std::string all(const std::string& element, const std::string& value) {
    const std::string type = vector_of(element);
    const std::string first = made("insertelement " + type + " poison, " + element + " " + value + ", i64 0");
    return made("shufflevector " + type + " " + first + ", " + type + " poison, " + vector_of("i32") +
                " zeroinitializer");
  }

  std::string select(const std::string& condition, const Operand& x, const std::string& a, const std::string& b) {
    return made("select " + vector_of("i1") + " " + condition + ", " + vector(x) + " " + a + ", " + vector(x) +
                " " + b);
  }
  std::string compare(const std::string& how, const Operand& x, const std::string& a, const std::string& b) {
    return made(how + " " + vector(x) + " " + a + ", " + b);
  }
  std::string either(const std::string& a, const std::string& b) {
    return made("or " + vector_of("i1") + " " + a + ", " + b);
  }
  std::string byte(const std::string& bits) {
    return made("zext " + vector_of("i1") + " " + bits + " to " + vector_of("i8"));
  }
  std::string call(const char* function, const Operand& x, const std::string& a) {
    const std::string suffix = "v" + std::to_string(n_) + (x.bytes == 8 ? "f64" : "f32");
    return made("call " + vector(x) + " @llvm." + function + "." + suffix + "(" + vector(x) + " " + a + ")");
  }

  // Of an instruction that is_written().
  std::string written(const Instruction& step) {
    const Operand &y = group_.values[step.result], &x = group_.values[step.in[0]];
    const std::string a = names_[step.in[0]], b = step.n_in > 1 ? names_[step.in[1]] : "";
    const Kind kind = kind_of(x);
    const std::string zero = "zeroinitializer";
    if (const char* op = find(operations, step.op, kind))
      return made(std::string(op) + " " + vector(x) + " " + a + ", " + b);
    if (const char* how = find(comparisons, step.op, kind)) return byte(compare(how, x, a, b));
    if (is(step, "dvt.maximum")) return larger("dvt.greater", x, a, b);
    if (is(step, "dvt.minimum")) return larger("dvt.less", x, a, b);
    if (is(step, "dvt.clip")) return clipped(step, x, a, b);
    if (is(step, "dvt.bitwise_left_shift") || is(step, "dvt.bitwise_right_shift")) return shifted(step, x, a, b);
    if (is(step, "dvt.sign")) return sign(x, a);
    if (is(step, "dvt.where"))
      return select(made("icmp ne " + vector(x) + " " + a + ", " + zero), y, b, names_[step.in[2]]);
    if (is(step, "dvt.negative"))
      return made((is_float(x) ? "fneg " + vector(x) + " " : "sub " + vector(x) + " " + zero + ", ") + a);
    if (is(step, "dvt.abs")) {
      if (is_float(x)) return call("fabs", x, a);
      if (kind != Kind::is_signed) return a;
      return select(compare("icmp slt", x, a, zero), x, made("sub " + vector(x) + " " + zero + ", " + a), a);
    }
    if (is(step, "dvt.square")) return made((is_float(x) ? "fmul " : "mul ") + vector(x) + " " + a + ", " + a);
    if (is(step, "dvt.relu")) return larger("dvt.greater", x, a, zero);
    if (is(step, "dvt.sqrt")) return call("sqrt", x, a);
    if (is(step, "dvt.rsqrt")) return inverse(x, call("sqrt", x, a));
    if (is(step, "dvt.reciprocal")) return inverse(x, a);
    if (is(step, "dvt.isnan")) return byte(compare("fcmp uno", x, a, a));
    if (is(step, "dvt.isinf") || is(step, "dvt.isfinite")) {
      const std::string infinity = all(type_of(x), constant(INFINITY));
      return byte(compare(is(step, "dvt.isinf") ? "fcmp oeq" : "fcmp olt", x, call("fabs", x, a), infinity));
    }
    if (is(step, "dvt.logical_not") || is(step, "dvt.bitwise_invert"))
      return made("xor " + vector(x) + " " + a + ", " + all(type_of(x), kind == Kind::boolean ? "1" : "-1"));
    if (const char* function = rounding_of(step.op)) return is_float(x) ? call(function, x, a) : a;
    return converted(x, y, a);  // dvt.astype
  }
  // a where `comparison` holds or it is NaN, else b.
  std::string larger(const char* comparison, const Operand& x, const std::string& a, const std::string& b) {
    std::string first = compare(find(comparisons, comparison, kind_of(x)), x, a, b);
    if (is_float(x)) first = either(first, compare("fcmp uno", x, a, a));
    return select(first, x, a, b);
  }
  std::string clipped(const Instruction& step, const Operand& x, const std::string& a, const std::string& b) {
    const bool low = !(step.absent & 1u << 1), high = !(step.absent & 1u << 2);
    const std::string y = low ? larger("dvt.greater", x, a, b) : a;
    return high ? larger("dvt.less", x, y, low ? names_[step.in[2]] : b) : y;
  }
  // Counts that are negative or too large shift everything out.
  std::string shifted(const Instruction& step, const Operand& x, const std::string& a, const std::string& count) {
    const std::string last = all(type_of(x), std::to_string(8 * x.bytes - 1));
    const std::string inside = compare("icmp ule", x, count, last);
    const bool left = is(step, "dvt.bitwise_left_shift"), is_signed = kind_of(x) == Kind::is_signed;
    const std::string n = select(inside, x, count, last);
    const std::string y = made((left ? "shl " : is_signed ? "ashr " : "lshr ") + vector(x) + " " + a + ", " + n);
    return !left && is_signed ? y : select(inside, x, y, "zeroinitializer");
  }
  std::string sign(const Operand& x, const std::string& a) {
    const std::string zero = "zeroinitializer";
    const auto number = [&](const char* comparison) {
      const std::string yes = compare(find(comparisons, comparison, kind_of(x)), x, a, zero);
      return made((is_float(x) ? "uitofp " : "zext ") + vector_of("i1") + " " + yes + " to " + vector(x));
    };
    const std::string positive = number("dvt.greater"), negative = number("dvt.less");
    const std::string y = made((is_float(x) ? "fsub " : "sub ") + vector(x) + " " + positive + ", " + negative);
    return is_float(x) ? select(compare("fcmp uno", x, a, a), x, a, y) : y;
  }
  std::string inverse(const Operand& x, const std::string& a) {
    return made("fdiv " + vector(x) + " " + all(type_of(x), "1.0") + ", " + a);
  }

  std::string converted(const Operand& from, const Operand& to, const std::string& a) {
    const Kind kind = kind_of(from);
    if (kind_of(to) == Kind::boolean)
      return byte(compare(is_float(from) ? "fcmp une" : "icmp ne", from, a, "zeroinitializer"));
    if (type_of(from) == type_of(to)) return a;
    if (is_float(from) && !is_float(to)) return truncated(from, to, a);
    if (to.half != Half::no && from.bytes >= 4) {  // on the way to a shorter float
      if (is_float(from)) return to_odd(a);
      if (from.bytes == 8) return to_odd(sticky(from, a));
      const char* op = kind == Kind::is_signed ? "sitofp " : "uitofp ";
      return to_odd(made(op + vector(from) + " " + a + " to " + vector_of("double")));
    }
    const char* op = is_float(from)            ? to.bytes > from.bytes ? "fpext" : "fptrunc"
                     : is_float(to)            ? kind == Kind::is_signed ? "sitofp" : "uitofp"
                     : to.bytes < from.bytes   ? "trunc"
                     : kind == Kind::is_signed ? "sext"
                                               : "zext";
    return made(std::string(op) + " " + vector(from) + " " + a + " to " + vector(to));
  }

  // A float without its fraction; out of range the nearest integer, of NaN 0.
  std::string truncated(const Operand& from, const Operand& to, const std::string& a) {
    const bool is_signed = kind_of(to) == Kind::is_signed;
    const double high = std::ldexp(1.0, 8 * to.bytes - is_signed), low = is_signed ? -high : 0;
    const double below = from.bytes == 4 ? float(low) - 1.0f : low - 1;  // or `low`, where that is the same float
    const auto number = [&](double x) { return all(type_of(from), constant(x)); };
    const std::string is_small = compare("fcmp ole", from, a, number(low));
    const std::string is_large = compare("fcmp oge", from, a, number(high));
    const std::string inside = made("and " + vector_of("i1") + " " + compare("fcmp ogt", from, a, number(below)) +
                                    ", " + compare("fcmp olt", from, a, number(high)));
    // The targets of processors' conversions.
    const std::string wide = vector_of(to.bytes < 4 ? "i32" : type_of(to));
    std::string y = made((is_signed || to.bytes < 4 ? "fptosi " : "fptoui ") + vector(from) + " " +
                         select(inside, from, a, "zeroinitializer") + " to " + wide);
    if (to.bytes < 4) y = made("trunc " + wide + " " + y + " to " + vector(to));
    const uint64_t ones = ~uint64_t{0} >> (64 - 8 * to.bytes), sign = is_signed ? ones / 2 + 1 : 0;
    const auto integer = [&](uint64_t x) { return all(type_of(to), std::to_string(x)); };
    y = select(inside, to, y, select(is_small, to, integer(sign), "zeroinitializer"));
    return select(is_large, to, integer(ones - sign), y);
  }
  // An integer of 64 bits as double, with the last bit set if others are cut off.
  std::string sticky(const Operand& x, const std::string& a) {
    const std::string type = vector(x), zero = "zeroinitializer";
    const auto with = [&](const char* op, const std::string& left, const std::string& right) {
      return made(std::string(op) + " " + type + " " + left + ", " + right);
    };
    const auto integer = [&](const char* value) { return all("i64", value); };
    const bool is_signed = kind_of(x) == Kind::is_signed;
    const std::string negative = is_signed ? compare("icmp slt", x, a, zero) : "";
    const std::string m = is_signed ? select(negative, x, with("sub", zero, a), a) : a;
    const std::string rest = compare("icmp ne", x, with("and", m, integer("4095")), zero);
    const std::string last = select(rest, x, integer("4096"), zero);
    const std::string cut = with("or", with("and", m, integer("-4096")), last);
    const std::string kept = select(compare("icmp ugt", x, m, integer("9007199254740991")), x, cut, m);
    const std::string doubles = vector_of("double"), y = made("uitofp " + type + " " + kept + " to " + doubles);
    if (!is_signed) return y;
    const std::string minus = made("fneg " + doubles + " " + y);
    return made("select " + vector_of("i1") + " " + negative + ", " + doubles + " " + minus + ", " + doubles + " " +
                y);
  }
  // double rounded to float, to the neighbour whose last bit is 1 if that is inexact.
  std::string to_odd(const std::string& x) {
    const std::string doubles = vector_of("double"), floats = vector_of("float"), bits = vector_of("i32"),
                      flags = vector_of("i1");
    const auto magnitude = [&](const std::string& y) {
      return made("call " + doubles + " @llvm.fabs.v" + std::to_string(n_) + "f64(" + doubles + " " + y + ")");
    };
    const std::string f = made("fptrunc " + doubles + " " + x + " to " + floats);
    const std::string back = made("fpext " + floats + " " + f + " to " + doubles);
    const std::string is_larger = made("fcmp ogt " + doubles + " " + magnitude(back) + ", " + magnitude(x));
    const std::string is_inexact = made("fcmp one " + doubles + " " + back + ", " + x);
    const auto number = [&](const std::string& flag) { return made("zext " + flags + " " + flag + " to " + bits); };
    const std::string u = made("bitcast " + floats + " " + f + " to " + bits);
    const std::string down = made("sub " + bits + " " + u + ", " + number(is_larger));
    const std::string odd = made("or " + bits + " " + down + ", " + number(is_inexact));
    return made("bitcast " + bits + " " + odd + " to " + floats);
  }

  // ---- fp16 and bf16

  static std::string half_of(Half half) { return half == Half::f16 ? "half" : "i16"; }
  std::string cast(const char* op, const std::string& from, const std::string& x, const std::string& to) {
    return made(std::string(op) + " " + vector_of(from) + " " + x + " to " + vector_of(to));
  }
  std::string on_bits(const char* op, const std::string& x, const char* constant) {
    return made(std::string(op) + " " + vector_of("i32") + " " + x + ", " + all("i32", constant));
  }
  std::string rounded(Half half, const std::string& x) {
    if (half == Half::f16) return cast("fpext", "half", cast("fptrunc", "float", x, "half"), "float");
    return cast("bitcast", "i32", on_bits("and", bfloat16_of(x), "-65536"), "float");
  }
  std::string widened(Half half, const std::string& x) {
    if (half == Half::f16) return cast("fpext", "half", x, "float");
    return cast("bitcast", "i32", on_bits("shl", cast("zext", "i16", x, "i32"), "16"), "float");
  }
  std::string narrowed(Half half, const std::string& x, bool is_rounded) {
    if (half == Half::f16) return cast("fptrunc", "float", x, "half");
    const std::string bits = is_rounded ? cast("bitcast", "float", x, "i32") : bfloat16_of(x);
    // The upper halves: one instruction shuffles two vectors into one.
    const std::string pairs = llvm::vector_of(2 * n_, "i16");
    const std::string both = made("bitcast " + vector_of("i32") + " " + bits + " to " + pairs);
    return made("shufflevector " + pairs + " " + both + ", " + pairs + " poison, " + lanes(1, n_, 2));
  }
  // float rounded to nearest even: the upper 16 bits.
  std::string bfloat16_of(const std::string& x) {
    const std::string bits = vector_of("i32"), u = cast("bitcast", "float", x, "i32");
    const std::string odd = on_bits("and", on_bits("lshr", u, "16"), "1");
    const std::string near = made("add " + bits + " " + on_bits("add", u, "32767") + ", " + odd);
    const std::string nan = made("fcmp uno " + vector_of("float") + " " + x + ", " + x);
    const std::string quiet = on_bits("or", u, "4194304");
    return made("select " + vector_of("i1") + " " + nan + ", " + bits + " " + quiet + ", " + bits + " " + near);
  }

  const Group& group_;
  const int n_;
  std::string text_;
  std::map<uint32_t, std::string> names_;  // of values
  int n_names_ = 0;
};
}  // namespace dovetail::cpu::llvm
