// Data types by number and by the suffix of kernels' names.
#pragma once
#include <stdexcept>
#include <vector>

#include "dovetail/backend.hpp"

namespace gpu {
using Types = std::vector<DLDataType>;

inline const Types boolean{dvt::boolean};
inline const Types integers{dvt::i8, dvt::i16, dvt::i32, dvt::i64, dvt::u8, dvt::u16, dvt::u32, dvt::u64};
inline const Types floats{dvt::f16, dvt::bf16, dvt::f32, dvt::f64};
inline const Types sizes{dvt::any(8), dvt::any(16), dvt::any(32), dvt::any(64), dvt::any(128)};

inline Types operator+(Types a, const Types& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline constexpr const char* type_names[] = {"bool", "i8",   "i16", "i32", "i64", "u8",  "u16", "u32", "u64",
                                             "f16",  "bf16", "f32", "f64", "x8",  "x16", "x32", "x64", "x128"};
inline constexpr size_t type_count = std::size(type_names);

constexpr size_t log2_bytes(unsigned bits) {
  size_t n = 0;
  for (; bits > 8; bits /= 2) ++n;
  return n;
}
// The place among the types of one size; of a complex number too.
constexpr size_t size_index(DLDataType t) { return 13 + log2_bytes(t.bits); }
// The place in type_names.
constexpr size_t type_index(DLDataType t) {
  switch (t.code) {
    case DVT_BOOL: return 0;
    case DVT_INT: return 1 + log2_bytes(t.bits);
    case DVT_UINT: return 5 + log2_bytes(t.bits);
    case DVT_BFLOAT: return 10;
    case DVT_FLOAT: return t.bits == 16 ? 9 : t.bits == 32 ? 11 : 12;
    default: return size_index(t);
  }
}
inline const char* type_name(DLDataType t) { return type_names[type_index(t)]; }

inline uint32_t bytes_of(DLDataType type) { return type.bits / 8; }
// Of the type in which a kernel computes.
inline uint32_t computed_bytes(DLDataType type) {
  return type.code == DVT_FLOAT || type.code == DVT_BFLOAT ? (type.bits == 64 ? 8 : 4) : bytes_of(type);
}
// Of a sum of floats while it grows (kernels/common/sum.cuh).
inline uint32_t bytes_of_sum(DLDataType type) { return type.bits == 16 ? 4 : 2 * bytes_of(type); }
// The unsigned integers of a type's size.
inline DLDataType unsigned_of(DLDataType type) { return {DVT_UINT, type.bits, 1}; }
}  // namespace gpu
