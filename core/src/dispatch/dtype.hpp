// The data types of an Array, and their DLPack descriptions.
#pragma once
#include <cstdint>
#include <optional>

#include "dovetail/abi.h"

namespace dovetail {
// The order is that of dtype_table; a DType fits in five bits, none included.
// clang-format off
enum class DType : uint8_t {
  b8, i8, i16, i32, i64, u8, u16, u32, u64, f8e4m3fn, f8e5m2, f16, bf16, f32, f64, c64, c128, none
};
// clang-format on
enum class DKind : uint8_t { boolean, signed_int, unsigned_int, floating, complex };

struct DTypeInfo {
  const char* name;   // "float32", as the array API spells it
  const char* brief;  // "f32", as case ids and tables spell it
  DLDataType dl;
  DKind kind;
  uint8_t bytes;
};
inline constexpr DTypeInfo dtype_table[] = {
    {"bool", "bool", {DVT_BOOL, 8, 1}, DKind::boolean, 1},
    {"int8", "i8", {DVT_INT, 8, 1}, DKind::signed_int, 1},
    {"int16", "i16", {DVT_INT, 16, 1}, DKind::signed_int, 2},
    {"int32", "i32", {DVT_INT, 32, 1}, DKind::signed_int, 4},
    {"int64", "i64", {DVT_INT, 64, 1}, DKind::signed_int, 8},
    {"uint8", "u8", {DVT_UINT, 8, 1}, DKind::unsigned_int, 1},
    {"uint16", "u16", {DVT_UINT, 16, 1}, DKind::unsigned_int, 2},
    {"uint32", "u32", {DVT_UINT, 32, 1}, DKind::unsigned_int, 4},
    {"uint64", "u64", {DVT_UINT, 64, 1}, DKind::unsigned_int, 8},
    {"float8_e4m3fn", "f8e4m3fn", {DVT_F8_E4M3FN, 8, 1}, DKind::floating, 1},
    {"float8_e5m2", "f8e5m2", {DVT_F8_E5M2, 8, 1}, DKind::floating, 1},
    {"float16", "f16", {DVT_FLOAT, 16, 1}, DKind::floating, 2},
    {"bfloat16", "bf16", {DVT_BFLOAT, 16, 1}, DKind::floating, 2},
    {"float32", "f32", {DVT_FLOAT, 32, 1}, DKind::floating, 4},
    {"float64", "f64", {DVT_FLOAT, 64, 1}, DKind::floating, 8},
    {"complex64", "c64", {DVT_COMPLEX, 64, 1}, DKind::complex, 8},
    {"complex128", "c128", {DVT_COMPLEX, 128, 1}, DKind::complex, 16},
};
inline constexpr int kDTypes = sizeof dtype_table / sizeof *dtype_table;
inline constexpr DType kDefaultFloat = DType::f32, kDefaultInt = DType::i64;

constexpr const DTypeInfo& info(DType t) { return dtype_table[int(t)]; }
constexpr bool is_float(DType t) { return info(t).kind == DKind::floating; }
constexpr bool is_float8(DType t) { return t == DType::f8e4m3fn || t == DType::f8e5m2; }
constexpr bool is_complex(DType t) { return info(t).kind == DKind::complex; }
// A float in which decompositions do not compute: float32 stands in for it.
constexpr bool is_narrow_float(DType t) { return is_float(t) && info(t).bytes < 4; }
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
// signed integer has no result.
std::optional<DType> promote(DType a, DType b);
}  // namespace dovetail
