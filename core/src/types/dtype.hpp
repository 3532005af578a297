// The data types of an Array, and their DLPack descriptions, from the one table that core/schema/generate.py
// writes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "dovetail/abi.h"
#include "dovetail/dtypes.hpp"

namespace dovetail {
// A DType fits in five bits, none included.
enum class DType : uint8_t {
#define DVT_ID(id, ...) id,
  DVT_FOR_EACH_DTYPE(DVT_ID)
#undef DVT_ID
      none
};
enum class DKind : uint8_t { boolean, signed_int, unsigned_int, floating, complex };

struct DTypeInfo {
  const char* name;   // "float32", as the array API spells it
  const char* brief;  // "f32", as case ids and tables spell it
  DLDataType dl;
  DKind kind;
  constexpr uint32_t bits() const { return dl.bits; }
  // Of `n` elements in a row, which may share bytes.
  constexpr uint64_t bytes(uint64_t n = 1) const { return dl.bits % 8 ? (n * dl.bits + 7) / 8 : n * (dl.bits / 8); }
};
inline constexpr DTypeInfo dtype_table[] = {
#define DVT_INFO(id, name, brief, code, bits, kind) {name, brief, {code, bits, 1}, DKind::kind},
    DVT_FOR_EACH_DTYPE(DVT_INFO)
#undef DVT_INFO
};
inline constexpr int kDTypes = sizeof dtype_table / sizeof *dtype_table;
inline constexpr DType kDefaultFloat = DType::f32, kDefaultInt = DType::i64;

constexpr const DTypeInfo& info(DType t) { return dtype_table[int(t)]; }
constexpr bool is_float(DType t) { return info(t).kind == DKind::floating; }
constexpr bool is_float8(DType t) { return is_float(t) && info(t).dl.bits == 8; }
// Its elements share bytes: an array of it is compact and begins with a byte.
constexpr bool is_packed(DType t) { return info(t).dl.bits < 8; }
// The dtype as which the elements of a stored one are read: it has their values, and each lies in memory of its
// own.
constexpr DType unpacked(DType t) {
  return is_float(t) ? DType::f32 : info(t).kind == DKind::signed_int ? DType::i8 : DType::u8;
}
// It is converted and moved; no op computes with it, and it promotes to nothing.
constexpr bool is_stored(DType t) {
  return is_packed(t) || (is_float8(t) && t != DType::f8e4m3fn && t != DType::f8e5m2);
}
// NumPy has it from a package: fewer bits than a byte, or a float of another format than IEEE 754's.
constexpr bool is_foreign(DType t) { return is_packed(t) || (is_float(t) && info(t).dl.code != DVT_FLOAT); }
constexpr bool is_complex(DType t) { return info(t).kind == DKind::complex; }
// A float in which decompositions do not compute: float32 stands in for it.
constexpr bool is_narrow_float(DType t) { return is_float(t) && info(t).bits() < 32; }
constexpr bool is_integer(DType t) {
  return info(t).kind == DKind::signed_int || info(t).kind == DKind::unsigned_int;
}
constexpr bool operator==(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
constexpr std::optional<DType> dtype_of(DLDataType dl) {
  for (int i = 0; i < kDTypes; ++i)
    if (dtype_table[i].dl == dl) return DType(i);
  return std::nullopt;
}
// The array API's promotion table, and beyond it: a float with any integer or bool gives the float, bool with
// anything gives the other, two different floats of one size (float16 with bfloat16) give float32. uint64 with a
// signed integer has no result, nor has a stored dtype with another.
std::optional<DType> promote(DType a, DType b);
// Why no op computes with it, and the cure.
std::string storage_refusal(DType);
}  // namespace dovetail
