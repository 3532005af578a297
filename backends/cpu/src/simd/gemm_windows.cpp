// Products with the windows of an image.
#include "simd/gemm_tiles.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Shifted<T>& b,
              T* c, int64_t c_row, bool add, const T* bias) {
  const int64_t rows = block_rows<T>(m);
  multiply_blocks<T>(m, n, k, {a, rows, rows * a_row, a_row, a_column}, b, {c, c_row, add, nullptr, bias},
                     run_length<T>(k));
}

namespace {
// Lines of memory to bring into the caches: `lines` of each row, `each` of all during `segment` steps.
constexpr int64_t segment = 32, line = 64;
struct Ahead {
  const char* at;
  int64_t row, lines, each;
};

// Adjacent pixels, broadcast, times `Columns` vectors of outputs, in registers.
template <class T, int Rows, int Columns>
[[gnu::noinline]] void pixel_tile(int64_t k, const T* x, const int64_t* offset, const T* weights, T* sums, bool add,
                                  const T* bias, Ahead soon) {
  constexpr int W = width<T>, P = panel<T>;
  V<T> sum[Rows][Columns] = {};
#pragma GCC unroll 1
  for (int64_t p = 0, at = 0; p < k;) {
    for (int64_t i = 0; i < soon.each; ++i) {
      __builtin_prefetch(soon.at + at * line);
      if (++at == soon.lines) at = 0, soon.at += soon.row;
    }
#pragma GCC unroll 1
    for (const int64_t end = least(k, p + segment); p < end; ++p, weights += P) {
      const T* const from = x + offset[p];
      V<T> row[Columns];
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) row[j] = load_vector(weights + j * W);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const T pixel = from[r];
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) sum[r][j] += pixel * row[j];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) {
      T* const to = sums + r * P + j * W;
      if (add) sum[r][j] += load_vector(to);
      if (bias) sum[r][j] += load_vector(bias + j * W);
      store_vector(sum[r][j], to);
    }
}

template <class T>
using PixelTile = void (*)(int64_t, const T*, const int64_t*, const T*, T*, bool, const T*, Ahead);
template <class T, int Columns>
inline constexpr PixelTile<T> pixel_tiles[14] = {
    pixel_tile<T, 1, Columns>,
    pixel_tile<T, 2, Columns>,
    pixel_tile<T, 3, Columns>,
    pixel_tile<T, 4, Columns>,
    pixel_tile<T, 5, Columns>,
    pixel_tile<T, 6, Columns>,
    pixel_tile<T, least(tile_rows<T>, 7), Columns>,
    pixel_tile<T, least(tile_rows<T>, 8), Columns>,
    pixel_tile<T, least(tile_rows<T>, 9), Columns>,
    pixel_tile<T, least(tile_rows<T>, 10), Columns>,
    pixel_tile<T, least(tile_rows<T>, 11), Columns>,
    pixel_tile<T, least(tile_rows<T>, 12), Columns>,
    pixel_tile<T, least(tile_rows<T>, 13), Columns>,
    pixel_tile<T, least(tile_rows<T>, 14), Columns>,
};
}  // namespace

template <class T>
void add_pixels(int64_t pixels, int64_t k, const T* x, const int64_t* offset, const T* weights, int64_t outputs,
                T* sums, bool add, const T* bias, const Rectangle& soon) {
  const PixelTile<T>* tiles = pixel_tiles<T, 2>;
  if constexpr (std::is_same_v<T, float>)  // float64 has no tiles of one vector: less to compile
    if (outputs <= width<T>) tiles = pixel_tiles<T, 1>;
  const auto share = [](int64_t n, int64_t count) { return (n + count - 1) / count; };
  const int64_t count = share(pixels, tile_rows<T>), rows = pixels / count, longer = pixels % count;
  const int64_t soon_rows = share(soon.rows, count), lines = share(soon.bytes, line),
                each = share(soon_rows * lines, share(k, segment));
  for (int64_t i = 0, at = 0, row = 0; i < count; ++i, row = least(row + soon_rows, soon.rows - soon_rows)) {
    const int64_t n = rows + (i < longer);
    tiles[n - 1](k, x + at, offset, weights, sums + at * panel<T>, add, bias,
                 {soon.at + row * soon.stride, soon.stride, lines, each});
    at += n;
  }
}

#define DOVETAIL_MULTIPLY(T)                                                                                       \
  template void multiply<T>(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const Shifted<T>&, T*, int64_t, \
                            bool, const T*);
DOVETAIL_MULTIPLY(float)
DOVETAIL_MULTIPLY(double)
DOVETAIL_MULTIPLY(uint32_t)
DOVETAIL_MULTIPLY(uint64_t)
#define DOVETAIL_ADD_PIXELS(T)                                                                                   \
  template void add_pixels<T>(int64_t, int64_t, const T*, const int64_t*, const T*, int64_t, T*, bool, const T*, \
                              const Rectangle&);
DOVETAIL_ADD_PIXELS(float)
DOVETAIL_ADD_PIXELS(double)
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
