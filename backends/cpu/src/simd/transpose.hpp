// Transposing copies of small blocks with shuffles.
#pragma once
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class T>
struct Square {  // N x N elements in vectors of 32 bytes
  static constexpr int N = 32 / sizeof(T);
  typedef T Row __attribute__((vector_size(32)));
  Row row[N];

  DOVETAIL_CPU_INLINE void transpose();
};

// Exchanges the off-diagonal elements of adjacent rows, then of pairs of rows, then halves.
template <class T>
DOVETAIL_CPU_INLINE void Square<T>::transpose() {
  Row t[N];
  if constexpr (N == 16) {
    for (int i = 0; i < 16; i += 2) {
      t[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
      t[i + 1] =
          __builtin_shufflevector(row[i], row[i + 1], 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    }
    for (int i = 0; i < 16; ++i) {
      if (i & 2) continue;
      row[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      row[i + 2] =
          __builtin_shufflevector(t[i], t[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
    for (int i = 0; i < 16; ++i) {
      if (i & 4) continue;
      t[i] = __builtin_shufflevector(row[i], row[i + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
      t[i + 4] =
          __builtin_shufflevector(row[i], row[i + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    }
    for (int i = 0; i < 8; ++i) {
      row[i] = __builtin_shufflevector(t[i], t[i + 8], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
      row[i + 8] =
          __builtin_shufflevector(t[i], t[i + 8], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
  } else if constexpr (N == 8) {
    for (int i = 0; i < 8; i += 2) {
      t[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
      t[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
      for (int j = i; j < i + 2; ++j) {
        row[j] = __builtin_shufflevector(t[j], t[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        row[j + 2] = __builtin_shufflevector(t[j], t[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    for (int i = 0; i < 4; ++i) {
      t[i] = __builtin_shufflevector(row[i], row[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      t[i + 4] = __builtin_shufflevector(row[i], row[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; ++i) row[i] = t[i];
  } else {
    static_assert(N == 4);
    for (int i = 0; i < 4; i += 2) {
      t[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 4, 2, 6);
      t[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; ++i) {
      row[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 4, 5);
      row[i + 2] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 6, 7);
    }
  }
}

// out[j * out_row + i] = convert(in[i * in_row + j]) for i < rows, j < columns, where convert changes the
// type or does nothing. In and out must not overlap.
template <class In, class Out, class Convert>
void transpose(int64_t rows, int64_t columns, const In* in, int64_t in_row, Out* out, int64_t out_row,
               Convert convert) {
  constexpr bool widens = sizeof(In)<sizeof(Out), narrows = sizeof(In)> sizeof(Out);
  static_assert(widens || narrows || std::is_same_v<In, Out>);
  using Wide = std::conditional_t<widens, Out, In>;  // the shuffled values
  int64_t i = 0;
  if constexpr (sizeof(Wide) >= 2) {
    constexpr int N = Square<Wide>::N;
    for (; i + N <= rows; i += N) {
      int64_t j = 0;
      for (; j + N <= columns; j += N) {
        Square<Wide> square;
        Wide line[N];
        for (int r = 0; r < N; ++r) {
          const In* const from = in + (i + r) * in_row + j;
          if constexpr (std::is_same_v<In, f16>) {  // which the compiler converts one by one
            square.row[r] = load_floats<N>(from);
            continue;
          }
          if constexpr (widens)
            for (int s = 0; s < N; ++s) line[s] = convert(from[s]);
          if constexpr (widens) std::memcpy(&square.row[r], line, 32);
          else std::memcpy(&square.row[r], from, 32);
        }
        square.transpose();
        for (int r = 0; r < N; ++r) {
          Out* const to = out + (j + r) * out_row + i;
          std::memcpy(narrows ? static_cast<void*>(line) : static_cast<void*>(to), &square.row[r], 32);
          if constexpr (narrows)
            for (int s = 0; s < N; ++s) to[s] = convert(line[s]);
        }
      }
      for (; j < columns; ++j)
        for (int r = 0; r < N; ++r) out[j * out_row + i + r] = convert(in[(i + r) * in_row + j]);
    }
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[j * out_row + i] = convert(in[i * in_row + j]);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
