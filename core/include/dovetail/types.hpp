// dovetail/types.hpp - data types as numbers and as words, for devices whose kernels are found by name: add_f32,
// copy_x64. C++17, header-only, like backend.hpp and like it no part of the protocol.
#ifndef DOVETAIL_TYPES_HPP
#define DOVETAIL_TYPES_HPP

#include <iterator>

#include "dovetail/backend.hpp"
#include "dovetail/floats.hpp"
#include "dovetail/layout.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace types {
// A set to add rows for: `for (DLDataType type : integers + floats)`.
struct Types : std::vector<DLDataType> {
  using std::vector<DLDataType>::vector;

  friend Types operator+(Types a, const Types& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

DVT_HIDDEN inline const Types boolean{dvt::boolean};
DVT_HIDDEN inline const Types integers{i8, i16, i32, i64, u8, u16, u32, u64};
DVT_HIDDEN inline const Types floats{f16, bf16, f32, f64};
DVT_HIDDEN inline const Types floats8{f8e4m3fn, f8e5m2};
// For kernels that move elements and do not look at them.
DVT_HIDDEN inline const Types sizes{any(8), any(16), any(32), any(64), any(128)};

// The data types, then the sizes.
inline constexpr const char* type_names[] = {
#define DVT_NAME(id, name, brief, code, bits, kind) brief,
    DVT_FOR_EACH_DTYPE(DVT_NAME)
#undef DVT_NAME
    // clang-format off
    "x8", "x16", "x32", "x64", "x128"};
// clang-format on
inline constexpr size_t type_count = std::size(type_names);

constexpr size_t log2_bytes(unsigned bits) {
  size_t n = 0;
  for (; bits > 8; bits /= 2) ++n;
  return n;
}
// The place among `sizes` in type_names; of a complex number too.
constexpr size_t size_index(DLDataType t) { return type_count - 5 + log2_bytes(t.bits); }
// The place in type_names; a complex number has that of its size.
constexpr size_t type_index(DLDataType t) {
  enum : size_t {
#define DVT_PLACE(id, ...) place_of_##id,
    DVT_FOR_EACH_DTYPE(DVT_PLACE)
#undef DVT_PLACE
  };
  if (t.code == DVT_COMPLEX) return size_index(t);
  switch (t.code << 8 | t.bits) {
#define DVT_CASE(id, name, brief, code, bits, kind) \
  case code << 8 | bits: return place_of_##id;
    DVT_FOR_EACH_DTYPE(DVT_CASE)
#undef DVT_CASE
    default: return size_index(t);
  }
}
inline const char* type_name(DLDataType t) { return type_names[type_index(t)]; }

constexpr bool is_float8(DLDataType t) { return t.code == DVT_F8_E4M3FN || t.code == DVT_F8_E5M2; }
constexpr bool is_float(DLDataType t) { return t.code == DVT_FLOAT || t.code == DVT_BFLOAT || is_float8(t); }
inline uint32_t bytes_of(DLDataType type) { return type.bits / 8; }
// The size of the type that kernels compute with: narrow floats are widened to float32.
inline uint32_t computed_bytes(DLDataType type) {
  return is_float(type) ? (type.bits == 64 ? 8 : 4) : bytes_of(type);
}
// The unsigned integers of a type's size.
inline DLDataType unsigned_of(DLDataType type) { return {DVT_UINT, type.bits, 1}; }

// An attribute that is a real number, as an element of a type.
inline Scalar scalar_of(const Attrs& attrs, uint32_t i, DLDataType type) {
  Scalar scalar{};
  const auto put = [&](auto value) { std::memcpy(&scalar, &value, sizeof value); };
  switch (type.code) {
    case DVT_BOOL: put(uint8_t(attrs.scalar<double>(i) != 0)); break;
    case DVT_BFLOAT: put(bf16_of(odd_float32_of(attrs.scalar<double>(i)))); break;
    case DVT_F8_E4M3FN: put(float8_of<3>(odd_float32_of(attrs.scalar<double>(i)))); break;
    case DVT_F8_E5M2: put(float8_of<2>(odd_float32_of(attrs.scalar<double>(i)))); break;
    case DVT_FLOAT:
      if (type.bits == 16) put(f16_of(odd_float32_of(attrs.scalar<double>(i))));
      else if (type.bits == 32) put(attrs.scalar<float>(i));
      else put(attrs.scalar<double>(i));
      break;
    case DVT_UINT: put(attrs.scalar<uint64_t>(i)); break;
    default: put(attrs.scalar<int64_t>(i));
  }
  return scalar;
}
}  // namespace types
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_TYPES_HPP
