#include "graph/number.hpp"

#include <bit>
#include <cmath>
#include <functional>

namespace dovetail {
double as_real(const Number& n, NumberValue v) { return n.is_real ? v.f : double(v.i); }

namespace {
std::optional<NumberValue> integer_value(int64_t i) { return NumberValue{i, 0}; }
std::optional<NumberValue> real_value(double f) { return NumberValue{0, f}; }

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
    default: return std::nullopt;
  }
  if (overflow) return std::nullopt;
  return integer_value(r);
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

std::optional<NumberValue> of_reals(Number::Op op, double a, double b) {
  switch (op) {
    case Number::add: return real_value(a + b);
    case Number::subtract: return real_value(a - b);
    case Number::multiply: return real_value(a * b);
    case Number::divide:
      if (b == 0) return std::nullopt;
      return real_value(a / b);
    case Number::floor_divide: return floor_divide(a, b);
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
    case Number::bit_length:
      return integer_value(std::bit_width(values[a].i < 0 ? -uint64_t(values[a].i) : uint64_t(values[a].i)));
    case Number::to_real: return real_value(as_real(table[a], values[a]));
    case Number::floor: return rounded(std::floor(as_real(table[a], values[a])));
    case Number::ceil: return rounded(std::ceil(as_real(table[a], values[a])));
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
  if (const auto found = index_.find(n); found != index_.end() && !std::isnan(n.f)) return found->second;
  entries_.push_back(n);
  return index_[n] = int(entries_.size()) - 1;
}

bool holds(const Guard& g, const std::vector<Number>& table, const std::vector<NumberValue>& values) {
  const auto a = size_t(g.a), b = size_t(g.b);
  const auto decide = [&](auto x, auto y) {
    switch (g.compare) {
      case Guard::equal: return x == y;
      case Guard::not_equal: return x != y;
      case Guard::less: return x < y;
      case Guard::less_equal: return x <= y;
    }
    return false;
  };
  if (table[a].is_real || table[b].is_real)
    return decide(as_real(table[a], values[a]), as_real(table[b], values[b]));
  return decide(values[a].i, values[b].i);
}
}  // namespace dovetail
