#include "graph/number.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <functional>

namespace dovetail {
double as_real(const Number& n, NumberValue v) { return n.is_real ? v.f : double(v.i); }

namespace {
std::optional<NumberValue> integer_value(int64_t i) { return NumberValue{i, 0}; }
std::optional<NumberValue> real_value(double f) { return NumberValue{0, f}; }

std::optional<NumberValue> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  int64_t r = 1;
  for (;; exponent >>= 1) {
    if (exponent & 1 && __builtin_mul_overflow(r, base, &r)) return std::nullopt;
    if (exponent <= 1) return integer_value(r);
    if (__builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
}

std::optional<NumberValue> of_integers(Number::Op op, int64_t a, int64_t b) {
  int64_t r = 0;
  bool overflow = false;
  switch (op) {
    case Number::add: overflow = __builtin_add_overflow(a, b, &r); break;
    case Number::subtract: overflow = __builtin_sub_overflow(a, b, &r); break;
    case Number::multiply: overflow = __builtin_mul_overflow(a, b, &r); break;
    case Number::floor_divide:
    case Number::modulo: {
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      int64_t q = a / b, m = a % b;
      if (m != 0 && (m < 0) != (b < 0)) --q, m += b;
      return integer_value(op == Number::modulo ? m : q);
    }
    case Number::minimum: return integer_value(b < a ? b : a);
    case Number::maximum: return integer_value(a < b ? b : a);
    case Number::shift_left: overflow = b < 0 || b > 62 || __builtin_mul_overflow(a, int64_t{1} << b, &r); break;
    case Number::shift_right:
      if (b < 0) return std::nullopt;
      return integer_value(a >> (b < 63 ? b : 63));
    case Number::power: return integer_power(a, b);
    case Number::bit_and: return integer_value(a & b);
    case Number::bit_or: return integer_value(a | b);
    case Number::bit_xor: return integer_value(a ^ b);
    default: return std::nullopt;
  }
  if (overflow) return std::nullopt;
  return integer_value(r);
}

uint64_t magnitude(int64_t i) { return i < 0 ? -uint64_t(i) : uint64_t(i); }

// Rounded once, as Python's / of ints: two integers beyond 2^53 would be rounded before they are divided.
std::optional<NumberValue> true_divide(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  const uint64_t x = magnitude(a), y = magnitude(b);
  constexpr uint64_t kExact = uint64_t{1} << 53;
  if (x <= kExact && y <= kExact) return real_value(double(a) / double(b));
  // At least 56 bits of the quotient; the last one also says whether there are further ones.
  const int shift = std::max(0, 56 + int(std::bit_width(y)) - int(std::bit_width(x)));
  const unsigned __int128 scaled = static_cast<unsigned __int128>(x) << shift;
  const auto quotient = uint64_t(scaled / y) | uint64_t(scaled % y != 0);
  const double size = std::ldexp(double(quotient), -shift);
  return real_value((a < 0) != (b < 0) ? -size : size);
}

// As Python's //, which takes the remainder off first: 1.0 // 0.1 is 9.0.
std::optional<NumberValue> floor_divide(double a, double b) {
  if (b == 0) return std::nullopt;
  double remainder = std::fmod(a, b), quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return real_value(std::copysign(0.0, a / b));
  const double whole = std::floor(quotient);
  return real_value(quotient - whole > 0.5 ? whole + 1 : whole);
}

std::optional<NumberValue> modulo(double a, double b) {
  if (b == 0) return std::nullopt;
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return real_value(std::copysign(0.0, b));
  return real_value((remainder < 0) != (b < 0) ? remainder + b : remainder);
}

// Nothing where Python raises or has a complex number.
std::optional<NumberValue> power(double a, double b) {
  if (std::isnan(a)) return real_value(b == 0 ? 1 : a);  // with its sign
  if (std::isnan(b)) return real_value(a == 1 ? 1 : b);
  const double r = std::pow(a, b);
  if (std::isfinite(a) && std::isfinite(b) && (std::isinf(r) || (a < 0 && b != std::floor(b)))) return std::nullopt;
  return real_value(r);
}

std::optional<NumberValue> of_reals(Number::Op op, double a, double b) {
  switch (op) {
    case Number::add: return real_value(a + b);
    case Number::subtract: return real_value(a - b);
    case Number::multiply: return real_value(a * b);
    case Number::divide:
      if (b == 0) return std::nullopt;
      return real_value(a / b);
    case Number::floor_divide: return floor_divide(a, b);
    case Number::modulo: return modulo(a, b);
    case Number::power: return power(a, b);
    case Number::minimum: return real_value(b < a ? b : a);
    case Number::maximum: return real_value(a < b ? b : a);
    default: return std::nullopt;
  }
}

std::optional<NumberValue> rounded(double whole) {
  if (!(std::fabs(whole) < 0x1p63)) return std::nullopt;
  return integer_value(int64_t(whole));
}
}  // namespace

std::optional<NumberValue> evaluate(const Number& n, const std::vector<Number>& table,
                                    const std::vector<NumberValue>& values) {
  const auto a = size_t(n.a), b = size_t(n.b);
  switch (n.op) {
    case Number::integer: return integer_value(n.i);
    case Number::real: return real_value(n.f);
    case Number::size:
    case Number::attribute: return std::nullopt;
    case Number::bit_length: return integer_value(std::bit_width(magnitude(values[a].i)));
    case Number::to_real: return real_value(as_real(table[a], values[a]));
    case Number::floor: return rounded(std::floor(as_real(table[a], values[a])));
    case Number::ceil: return rounded(std::ceil(as_real(table[a], values[a])));
    case Number::negative:
      if (n.is_real) return real_value(-as_real(table[a], values[a]));
      return of_integers(Number::subtract, 0, values[a].i);
    case Number::divide:
      if (!table[a].is_real && !table[b].is_real) return true_divide(values[a].i, values[b].i);
      break;
    default: break;
  }
  if (n.is_real) return of_reals(n.op, as_real(table[a], values[a]), as_real(table[b], values[b]));
  return of_integers(n.op, values[a].i, values[b].i);
}

size_t NumberTable::Hash::operator()(const Number& n) const {
  size_t h = size_t(n.op) * 31 + size_t(n.is_real);
  for (const size_t part : {size_t(n.a), size_t(n.b), size_t(n.i), size_t(std::bit_cast<uint64_t>(n.f))})
    h = (h ^ part) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

bool NumberTable::Same::operator()(const Number& x, const Number& y) const {
  const auto bits = [](const Number& n) { return std::bit_cast<uint64_t>(n.f); };
  return x.op == y.op && x.is_real == y.is_real && x.a == y.a && x.b == y.b && x.i == y.i && bits(x) == bits(y);
}

int NumberTable::add(Number n) {
  const auto literal = [&](int i) { return i < 0 || entries_[size_t(i)].op <= Number::real; };
  if (!is_leaf(n.op) && literal(n.a) && literal(n.b)) {
    std::vector<Number> operands;
    std::vector<NumberValue> values;
    for (const int i : {n.a, n.b})
      if (i >= 0) operands.push_back(entries_[size_t(i)]), values.push_back({operands.back().i, operands.back().f});
    Number alone = n;
    alone.a = 0, alone.b = n.b < 0 ? -1 : 1;
    if (const auto v = evaluate(alone, operands, values))
      n = n.is_real ? Number{.op = Number::real, .is_real = true, .f = v->f}
                    : Number{.op = Number::integer, .i = v->i};
  }
  const auto [found, fresh] = index_.try_emplace(n, int(entries_.size()));
  if (fresh) entries_.push_back(n);
  return found->second;
}

namespace {
std::partial_ordering order(int64_t i, double f) {  // exact
  if (!(f >= -0x1p63 && f < 0x1p63)) return 0.0 <=> f;
  const auto whole = int64_t(f);
  return i != whole ? std::partial_ordering(i <=> whole) : double(whole) <=> f;
}

std::partial_ordering order(const Number& x, NumberValue v, const Number& y, NumberValue w) {
  if (x.is_real && y.is_real) return v.f <=> w.f;
  if (!x.is_real && !y.is_real) return v.i <=> w.i;
  return x.is_real ? 0 <=> order(w.i, v.f) : order(v.i, w.f);
}
}  // namespace

bool holds(const Guard& g, const std::vector<Number>& table, const std::vector<NumberValue>& values) {
  const auto a = size_t(g.a), b = size_t(g.b);
  if (g.compare == Guard::same)
    return table[a].is_real == table[b].is_real && values[a].i == values[b].i &&
           std::bit_cast<uint64_t>(values[a].f) == std::bit_cast<uint64_t>(values[b].f);
  const std::partial_ordering found = order(table[a], values[a], table[b], values[b]);
  switch (g.compare) {
    case Guard::equal: return found == 0;
    case Guard::not_equal: return found != 0;
    case Guard::less: return found < 0;
    default: return found <= 0;
  }
}
}  // namespace dovetail
