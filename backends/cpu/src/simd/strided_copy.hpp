// Copies elements from any strides to any strides.
#pragma once
#include <cstring>

#include "kernel.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace strided {
inline constexpr uint64_t grain_bytes = 1 << 17;  // worth a thread

// The iteration space: axes by descending output stride, contiguous ones merged, axes of one element dropped.
struct Space {
  int ndim = 0;
  int64_t shape[DVT_MAX_NDIM], in[DVT_MAX_NDIM], out[DVT_MAX_NDIM];

  Space(const DLTensor* from, const DLTensor* to) {
    int order[DVT_MAX_NDIM], n = 0;
    for (int axis = 0; axis < to->ndim; ++axis) {
      if (to->shape[axis] == 1) continue;
      int at = n++;
      for (; at > 0 && to->strides[order[at - 1]] < to->strides[axis]; --at) order[at] = order[at - 1];
      order[at] = axis;
    }
    for (int i = 0; i < n; ++i) {
      const int64_t size = to->shape[order[i]], x = from->strides[order[i]], y = to->strides[order[i]];
      if (ndim && in[ndim - 1] == x * size && out[ndim - 1] == y * size) {
        shape[ndim - 1] *= size, in[ndim - 1] = x, out[ndim - 1] = y;
      } else {
        shape[ndim] = size, in[ndim] = x, out[ndim++] = y;
      }
    }
    if (!ndim) shape[0] = in[0] = out[0] = 1, ndim = 1;
  }
  // Makes axis `at` the last but one; the others keep their order.
  void make_last_but_one(int at) {
    const int64_t s = shape[at], x = in[at], y = out[at];
    for (int i = at; i < ndim - 2; ++i) shape[i] = shape[i + 1], in[i] = in[i + 1], out[i] = out[i + 1];
    shape[ndim - 2] = s, in[ndim - 2] = x, out[ndim - 2] = y;
  }
  // Offsets of the index-th position among the first n axes.
  void locate(int n, int64_t index, int64_t& x, int64_t& y) const {
    x = y = 0;
    for (int axis = n; axis-- > 0; index /= shape[axis]) {
      x += index % shape[axis] * in[axis];
      y += index % shape[axis] * out[axis];
    }
  }
  int64_t positions(int n) const {
    int64_t product = 1;
    for (int axis = 0; axis < n; ++axis) product *= shape[axis];
    return product;
  }
};

template <class T>
void copy_dense(const T* in, T* out, int64_t n) {
  dvt::parallel_for(uint64_t(n), grain_bytes / sizeof(T), [=](uint64_t begin, uint64_t end, uint32_t) {
    std::memcpy(out + begin, in + begin, (end - begin) * sizeof(T));
  });
}

// n bytes by vectors, of which the last overlaps the one before.
template <int64_t width>
DOVETAIL_CPU_INLINE void copy_vectors(const char* from, char* to, int64_t n) {
  typedef char V __attribute__((vector_size(width), aligned(1), may_alias));
  for (int64_t at = 0; at + width <= n; at += width)
    *reinterpret_cast<V*>(to + at) = *reinterpret_cast<const V*>(from + at);
  if (n % width) *reinterpret_cast<V*>(to + n - width) = *reinterpret_cast<const V*>(from + n - width);
}
DOVETAIL_CPU_INLINE void copy_bytes(const void* from, void* to, int64_t n) {
  const char* const x = static_cast<const char*>(from);
  char* const y = static_cast<char*>(to);
  if (n > 1024) std::memcpy(y, x, size_t(n));
  else if (n >= 32) copy_vectors<32>(x, y, n);
  else if (n >= 8) copy_vectors<8>(x, y, n);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}

template <class T>
DOVETAIL_CPU_INLINE void copy_row(const T* from, int64_t x_step, T* to, int64_t y_step, int64_t n) {
  if (x_step == 1 && y_step == 1) copy_bytes(from, to, n * int64_t(sizeof(T)));
  else if (y_step == 1 && x_step == 0)
    for (int64_t i = 0; i < n; ++i) to[i] = *from;
  else
    for (int64_t i = 0; i < n; ++i) to[i * y_step] = from[i * x_step];
}

template <class T>
void copy_plane(const T* from, int64_t x_row, int64_t x_step, T* to, int64_t y_row, int64_t y_step, int64_t rows,
                int64_t n) {
  const int64_t bytes = n * int64_t(sizeof(T));
  if (x_step == 1 && y_step == 1 && bytes >= 32 && bytes <= 1024)
    for (int64_t i = 0; i < rows; ++i)
      copy_vectors<32>(reinterpret_cast<const char*>(from + i * x_row), reinterpret_cast<char*>(to + i * y_row),
                       bytes);
  else
    for (int64_t i = 0; i < rows; ++i) copy_row(from + i * x_row, x_step, to + i * y_row, y_step, n);
}

template <class T>
void copy_rows(const Space& s, const T* in, T* out) {
  const int last = s.ndim - 1;
  const int64_t n = s.shape[last], of_plane = last ? s.shape[last - 1] : 1, x_row = last ? s.in[last - 1] : 0,
                y_row = last ? s.out[last - 1] : 0;
  const auto rows = [&](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t row = int64_t(begin); row < int64_t(end);) {
      int64_t x, y;
      s.locate(last, row, x, y);
      const int64_t run = least(int64_t(end) - row, of_plane - row % of_plane);
      copy_plane(in + x, x_row, s.in[last], out + y, y_row, s.out[last], run, n);
      row += run;
    }
  };
  dvt::parallel_for(uint64_t(s.positions(last)), 1 + grain_bytes / sizeof(T) / uint64_t(n), rows);
}

// out[i * out_step + j] = in[j * in_step + i] for a square with `width` bytes per row, by rounds of interleaving:
// each round rotates the bits of every element's index by one.
template <class T, int width = 16>
struct Square {
  static constexpr int n = width / sizeof(T);
  typedef T V __attribute__((vector_size(width), aligned(1), may_alias));

  template <int... i>
  DOVETAIL_CPU_INLINE static V interleave(V a, V b, bool high) {
#if defined(__clang__)
    return high ? __builtin_shufflevector(a, b, ((n / 2 + i / 2) + (i % 2) * n)...)
                : __builtin_shufflevector(a, b, (i / 2 + (i % 2) * n)...);
#else
    typedef T M __attribute__((vector_size(width)));
    return high ? __builtin_shuffle(a, b, M{T((n / 2 + i / 2) + (i % 2) * n)...})
                : __builtin_shuffle(a, b, M{T(i / 2 + (i % 2) * n)...});
#endif
  }
  template <int... i>
  DOVETAIL_CPU_INLINE static void run(const T* in, int64_t in_step, T* out, int64_t out_step) {
    V a[n], b[n];
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) a[k] = *reinterpret_cast<const V*>(in + k * in_step);
#pragma GCC unroll 4
    for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 16
      for (int k = 0; k < n / 2; ++k) {
        b[2 * k] = interleave<i...>(a[k], a[k + n / 2], false);
        b[2 * k + 1] = interleave<i...>(a[k], a[k + n / 2], true);
      }
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) a[k] = b[k];
    }
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) *reinterpret_cast<V*>(out + k * out_step) = a[k];
  }
};
DOVETAIL_CPU_INLINE void square(const uint8_t* in, int64_t in_step, uint8_t* out, int64_t out_step) {
  Square<uint8_t>::run<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(in, in_step, out, out_step);
}
DOVETAIL_CPU_INLINE void square(const uint16_t* in, int64_t in_step, uint16_t* out, int64_t out_step) {
  Square<uint16_t>::run<0, 1, 2, 3, 4, 5, 6, 7>(in, in_step, out, out_step);
}
DOVETAIL_CPU_INLINE void square(const uint32_t* in, int64_t in_step, uint32_t* out, int64_t out_step) {
  Square<uint32_t>::run<0, 1, 2, 3>(in, in_step, out, out_step);
}
DOVETAIL_CPU_INLINE void square(const uint64_t* in, int64_t in_step, uint64_t* out, int64_t out_step) {
  Square<uint64_t>::run<0, 1>(in, in_step, out, out_step);
}

// Tiles of a transposition are as wide as a cache line in both directions. Rows whose distance is a power of
// two evict each other from the cache, so each is read once and written once, whole; the shuffling is done in
// registers.
template <class T>
constexpr int64_t tile = 64 / sizeof(T);

// out[i * out_step + j] = in[j * in_step + i] for i, j < tile
template <class T>
DOVETAIL_CPU_INLINE void shuffle_tile(const T* in, int64_t in_step, T* out, int64_t out_step) {
  constexpr int64_t n = tile<T>, part = 16 / sizeof(T);
  for (int64_t i = 0; i < n; i += part)
    for (int64_t j = 0; j < n; j += part) square(in + j * in_step + i, in_step, out + i * out_step + j, out_step);
}
template <class T>
void copy_tile(const T* in, int64_t in_step, T* out, int64_t out_step) {
  constexpr int64_t n = tile<T>;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    using Whole = Square<T, 64>;
    return Whole::template run<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(in, in_step, out, out_step);
  } else if constexpr (sizeof(T) == 8) {
    return Square<T, 64>::template run<0, 1, 2, 3, 4, 5, 6, 7>(in, in_step, out, out_step);
  }
#endif
  alignas(64) T from[n * n];
  for (int64_t j = 0; j < n; ++j) std::memcpy(from + j * n, in + j * in_step, 64);
  shuffle_tile(from, n, out, out_step);
}
template <class T>
void copy_part_of_tile(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[i * out_step + j] = in[j * in_step + i];
}

#if defined(__AVX2__)
// Blocks of tiles. Where rows of the output are multiples of 1024 bytes apart, few sets of the caches share its
// lines, which are evicted before the next tile needs what was fetched next to them. So several lines of each row
// of the input are read one after the other, and so are several lines of each row of the output written.
namespace blocks {
#if defined(__AVX512F__)
constexpr int64_t vector = 64;
DOVETAIL_CPU_INLINE void copy_vector(const void* from, void* to) {
  _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}
DOVETAIL_CPU_INLINE void stream_vector(const void* from, void* to) {
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
}
#else
constexpr int64_t vector = 32;
DOVETAIL_CPU_INLINE void copy_vector(const void* from, void* to) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
DOVETAIL_CPU_INLINE void stream_vector(const void* from, void* to) {
  _mm256_stream_si256(static_cast<__m256i*>(to), _mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
#endif
constexpr uint64_t streamed = 8u << 20;  // bytes of an output that is written past the caches
template <class T>
constexpr int64_t side = (vector == 64 || sizeof(T) < 4 ? 256 : 512) / int64_t(sizeof(T));

// Rows of whole lines; `past`: past the caches, to lines that are aligned.
template <class T>
DOVETAIL_CPU_INLINE void copy_lines(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows,
                                    int64_t n, bool past) {
  constexpr int64_t step = vector / int64_t(sizeof(T));
  for (int64_t i = 0; i < rows; ++i, from += from_step, to += to_step)
    if (past)
      for (int64_t j = 0; j < n; j += step) stream_vector(from + j, to + j);
    else
      for (int64_t j = 0; j < n; j += step) copy_vector(from + j, to + j);
}

// out[i * out_step + j] = in[j * in_step + i] for rows and columns that are whole tiles, `side` at most.
template <class T>
[[gnu::noinline]] void copy_block(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t rows,
                                  int64_t columns, bool past) {
  constexpr int64_t n = tile<T>;
  alignas(64) T block[side<T> * side<T>];
  for (int64_t j = 0; j < columns; j += n) {
    if constexpr (vector == 64) {
      for (int64_t i = 0; i < rows; i += n)
        copy_tile(in + j * in_step + i, in_step, block + i * side<T> + j, side<T>);
    } else {
      alignas(64) T from[n * side<T>];
      copy_lines(in + j * in_step, in_step, from, side<T>, n, rows, false);
      for (int64_t i = 0; i < rows; i += n) shuffle_tile(from + i, side<T>, block + i * side<T> + j, side<T>);
    }
  }
  copy_lines(block, side<T>, out, out_step, rows, columns, past);
}

// Whether the output is large and every line of it aligned.
template <class T>
bool is_streamed(const Space& s, const T* out) {
  uint64_t bits = reinterpret_cast<uintptr_t>(out);
  for (int axis = 0; axis < s.ndim - 1; ++axis) bits |= uint64_t(s.out[axis]) * sizeof(T);
  return bits % 64 == 0 && uint64_t(s.positions(s.ndim)) * sizeof(T) >= streamed;
}
template <class T>
bool suits(const Space& s, const T* out) {
  const int a = s.ndim - 2, b = s.ndim - 1;
  const int64_t step = s.out[a] * int64_t(sizeof(T));
  return s.shape[a] >= side<T> && s.shape[b] >= side<T> && step >= 2048 &&
         (step % 1024 == 0 || is_streamed(s, out));
}

template <class T>
void copy(const Space& s, const T* in, T* out) {
  constexpr int64_t n = tile<T>, size = side<T>;
  const int a = s.ndim - 2, b = s.ndim - 1;
  const int64_t down = divide_up(s.shape[a], size), across = divide_up(s.shape[b], size), in_step = s.in[b],
                out_step = s.out[a];
  const bool past = is_streamed(s, out);
  const uint64_t count = uint64_t(s.positions(a) * down * across);
  dvt::parallel_for(count, divide_up(grain_bytes, size * size * sizeof(T)),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      for (uint64_t index = begin; index < end; ++index) {
                        const int64_t of_plane = int64_t(index) % (down * across), i = of_plane / across * size,
                                      j = of_plane % across * size;
                        int64_t x, y;
                        s.locate(a, int64_t(index) / (down * across), x, y);
                        const T* const from = in + x + i + j * in_step;
                        T* const to = out + y + i * out_step + j;
                        const int64_t rows = least(s.shape[a] - i, size), columns = least(s.shape[b] - j, size),
                                      r = rows / n * n, c = columns / n * n;
                        copy_block(from, in_step, to, out_step, r, c, past);
                        copy_part_of_tile(from + r, in_step, to + r * out_step, out_step, rows - r, columns);
                        copy_part_of_tile(from + c * in_step, in_step, to + c, out_step, r, columns - c);
                      }
                      if (past) _mm_sfence();
                    });
}
}  // namespace blocks
#endif

// The last axis is dense in the output, the last but one in the input.
template <class T>
void copy_transposed(const Space& s, const T* in, T* out) {
  constexpr int64_t size = tile<T>;
  const int a = s.ndim - 2, b = s.ndim - 1;
#if defined(__AVX2__)
  if constexpr (sizeof(T) < 16)
    if (blocks::suits(s, out)) return blocks::copy(s, in, out);
#endif
  const int64_t down = (s.shape[a] + size - 1) / size, across = (s.shape[b] + size - 1) / size;
  const uint64_t tiles = uint64_t(s.positions(a) * down * across);
  const bool short_rows = s.shape[b] * int64_t(sizeof(T)) <= 1024;  // of the output, written one after the other
  dvt::parallel_for(tiles, grain_bytes / 64 / size, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t index = begin; index < end; ++index) {
      // Down, but for short rows, which are written whole while they are in the first cache.
      const int64_t of_plane = int64_t(index) % (down * across), band = short_rows ? 4 : down,
                    first = of_plane / (band * across) * band, in_band = least(band, down - first),
                    rest = of_plane - first * across, i = (first + rest % in_band) * size,
                    j = rest / in_band * size;
      int64_t x, y;
      s.locate(a, int64_t(index) / down / across, x, y);
      const T* from = in + x + i + j * s.in[b];
      T* to = out + y + i * s.out[a] + j;
      const int64_t rows = s.shape[a] - i, columns = s.shape[b] - j;
      if constexpr (sizeof(T) < 16)
        if (rows >= size && columns >= size) {
          copy_tile(from, s.in[b], to, s.out[a]);
          continue;
        }
      copy_part_of_tile(from, s.in[b], to, s.out[a], rows < size ? rows : size, columns < size ? columns : size);
    }
  });
}

}  // namespace strided

// Both have one shape, of one element at least.
template <class T>
void copy_strided(const DLTensor* from, const DLTensor* to) {
  using namespace strided;
  const T* in = dvt::data<const T>(from);
  T* out = dvt::data<T>(to);
  if (to->ndim == 0) {  // also a host scalar
    *out = *in;
    return;
  }
  Space s(from, to);
  const int last = s.ndim - 1;
  if (s.ndim == 1 && s.in[0] == 1 && s.out[0] == 1) return copy_dense(in, out, s.shape[0]);
  if (s.out[last] == 1 && s.in[last] != 1 && s.shape[last] >= 4)
    for (int axis = 0; axis < last; ++axis)
      if (s.in[axis] == 1 && s.shape[axis] >= 4) {
        s.make_last_but_one(axis);
        return copy_transposed(s, in, out);
      }
  copy_rows(s, in, out);
}

// An element of 16 bytes.
struct alignas(8) Pair {
  uint64_t half[2];
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
