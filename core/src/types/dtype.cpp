#include "types/dtype.hpp"

#include <algorithm>
#include <array>

namespace dovetail {
namespace {
constexpr DType find(DKind kind, uint32_t bits) {
  for (int i = 0; i < kDTypes; ++i)
    if (dtype_table[i].kind == kind && dtype_table[i].bits() == bits) return DType(i);
  return DType::none;
}

// The smallest complex type that holds the real type's floats.
constexpr DType complex_of(DType real) { return real == DType::f64 ? DType::c128 : DType::c64; }

constexpr DType promote_ints(DType a, DType b) {
  const uint32_t a_bits = info(a).bits(), b_bits = info(b).bits();
  if (info(a).kind == info(b).kind) return a_bits < b_bits ? b : a;
  const bool a_signed = info(a).kind == DKind::signed_int;
  const uint32_t signed_bits = a_signed ? a_bits : b_bits, unsigned_bits = a_signed ? b_bits : a_bits;
  return find(DKind::signed_int, std::max(signed_bits, 2 * unsigned_bits));  // none: would take 128 bits
}

constexpr DType promote_any(DType a, DType b) {
  if (a == b) return a;
  if (is_stored(a) || is_stored(b)) return DType::none;
  if (b == DType::b8) return a;
  if (a == DType::b8) return b;
  if (is_integer(a)) return is_integer(b) ? promote_ints(a, b) : b;
  if (is_integer(b)) return a;
  if (is_complex(a) && is_complex(b)) return DType::c128;
  if (is_complex(a)) return a == DType::c64 ? complex_of(b) : a;
  if (is_complex(b)) return b == DType::c64 ? complex_of(a) : b;
  if (info(a).bits() == info(b).bits()) return DType::f32;  // different ones
  return info(a).bits() < info(b).bits() ? b : a;
}

constexpr auto table = [] {
  std::array<std::array<DType, kDTypes>, kDTypes> t{};
  for (int a = 0; a < kDTypes; ++a)
    for (int b = 0; b < kDTypes; ++b) t[a][b] = promote_any(DType(a), DType(b));
  return t;
}();
}  // namespace

std::string storage_refusal(DType t) {
  return std::string(info(t).name) + " is for storage" + (is_packed(t) ? ", and its elements share bytes" : "") +
         ": expected x.astype(\"" + info(unpacked(t)).name + "\") first";
}

std::optional<DType> promote(DType a, DType b) {
  if (a == DType::none || b == DType::none) return std::nullopt;
  const DType t = table[int(a)][int(b)];
  return t == DType::none ? std::nullopt : std::optional(t);
}
}  // namespace dovetail
