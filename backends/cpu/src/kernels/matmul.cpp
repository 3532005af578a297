// matmul and linear: the product is cut into tiles for the host's pool; each tile runs on one thread, by the
// engine that `one_product` selects.
#include <cstdio>
#include <functional>

#include "autotune.hpp"
#include "blas.hpp"
#include "chunks.hpp"
#include "isa.hpp"
#include "kernel.hpp"
#include "onednn.hpp"
#include "simd/complex.hpp"
#include "simd/gemm.hpp"
#include "simd/transpose.hpp"
#include "tiles.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using c64 = Complex<float>;
using c128 = Complex<double>;
template <class T>
inline constexpr bool is_complex = std::is_same_v<T, c64> || std::is_same_v<T, c128>;

// A library call costs locks, memory and copies of operands: small products do not repay it, nor do those
// whose b is a vector, which read every number once.
template <class T, class Out>
bool worth_a_call(const gemm::Product<T, Out>& p) {
  return p.all_n > 1 && p.k > 1 && p.all_m * p.all_n * p.k >= 32 * 32 * 32;
}

template <class T>
inline constexpr DLDataType type_of = std::is_same_v<T, bf16>    ? dvt::bf16
                                      : std::is_same_v<T, f16>   ? dvt::f16
                                      : std::is_same_v<T, float> ? dvt::f32
                                                                 : dvt::u8;
template <class T, class Out>
onednn::Product describe(const gemm::Product<T, Out>& p) {
  return {p.m,        p.n,     p.k,        p.a_row,      p.a_column,       p.b_row,
          p.b_column, p.c_row, type_of<T>, type_of<Out>, p.bias != nullptr};
}
template <class T>
bool served_by_onednn() {
  if constexpr (std::is_same_v<T, bf16>) return onednn::fast_bfloat16();
  else if constexpr (std::is_same_v<T, f16>) return onednn::fast_float16();
  else if constexpr (std::is_same_v<T, uint8_t>) return onednn::fast_int8();
  else return true;
}

// multiply(description, bias, c), with the types that oneDNN requires for bias and result.
template <class Multiply>
bool converted(const gemm::Product<float>& p, Multiply multiply) {
  return multiply(describe(p), p.bias, p.c);
}
template <class Half, class Multiply>
  requires gemm::is_half<Half>
bool converted(const gemm::Product<Half, float>& p, Multiply multiply) {  // of matmul, which has no bias
  return multiply(describe(p), nullptr, p.c);
}
template <class Half, class Multiply>
  requires gemm::is_half<Half>
bool converted(const gemm::Product<Half>& p, Multiply multiply) {
  float* bias = nullptr;
  if (p.bias) {
    bias = static_cast<float*>(scratch(Scratch::kernel, size_t(p.n) * sizeof(float)));
    if (!bias) return false;
    widen(p.bias, bias, p.n);
  }
  return multiply(describe(p), bias, p.c);
}
template <class Multiply>
bool converted(const gemm::Product<uint8_t>& p, Multiply multiply) {
  int32_t* const sums = static_cast<int32_t*>(scratch(Scratch::result, size_t(p.m * p.n) * sizeof(int32_t)));
  onednn::Product d = describe(p);
  d.c_row = p.n, d.out = dvt::i32, d.bias = false;
  if (!sums || !multiply(d, nullptr, sums)) return false;
  for (int64_t i = 0; i < p.m; ++i) {
    const int32_t* const from = sums + i * p.n;
    uint8_t* const to = p.c + i * p.c_row;
    if (p.bias)
      for (int64_t j = 0; j < p.n; ++j) to[j] = uint8_t(from[j] + p.bias[j]);
    else
      for (int64_t j = 0; j < p.n; ++j) to[j] = uint8_t(from[j]);
  }
  return true;
}

template <class T, class Out>
bool by_onednn(const gemm::Product<T, Out>& p) {
  if (!worth_a_call(p) || !served_by_onednn<T>()) return false;
  return converted(p, [&](const onednn::Product& d, const float* bias, void* c) {
    return onednn::multiply(d, p.a, p.b, bias, c);
  });
}

template <class T>
T sum_of(T a, T b) {
  if constexpr (is_complex<T>) return {a.re + b.re, a.im + b.im};
  else return a + b;
}
template <class T>
void add_bias(T* c, int64_t m, int64_t n, int64_t c_row, const T* bias) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * c_row + j] = sum_of(c[i * c_row + j], bias[j]);
}

template <class T, class Out>
bool blas_product(BlasProduct q, const gemm::Product<T, Out>& p) {
  if constexpr (!std::is_same_v<T, Out>) {
    return blas_multiply_bfloat16(q, &p.a->bits, &p.b->bits, p.c);
  } else if constexpr (std::is_same_v<T, bf16>) {  // added up in float32, including the bias, and rounded once
    float* const sum = static_cast<float*>(scratch(Scratch::result, size_t(p.m * p.n) * sizeof(float)));
    float* const bias = static_cast<float*>(scratch(Scratch::kernel, size_t(p.n) * sizeof(float)));
    q.c_row = p.n;
    if (!sum || !bias || !blas_multiply_bfloat16(q, &p.a->bits, &p.b->bits, sum)) return false;
    if (p.bias) widen(p.bias, bias, p.n), add_bias(sum, p.m, p.n, p.n, bias);
    for (int64_t i = 0; i < p.m; ++i) narrow(sum + i * p.n, p.c + i * p.c_row, p.n);
  } else {
    if constexpr (is_complex<T>) {
      if (!blas_multiply_complex(q, &p.a->re, &p.b->re, &p.c->re)) return false;
    } else {
      if (!blas_multiply(q, p.a, p.b, p.c)) return false;
    }
    if (p.bias) add_bias(p.c, p.m, p.n, p.c_row, p.bias);
  }
  return true;
}

// OpenBLAS needs matrices whose rows or columns are contiguous.
template <class T, class Out>
bool by_blas(const gemm::Product<T, Out>& p) {
  const bool a_plain = p.a_column == 1 && p.a_row >= p.k, a_transposed = p.a_row == 1 && p.a_column >= p.m;
  const bool b_plain = p.b_column == 1 && p.b_row >= p.n, b_transposed = p.b_row == 1 && p.b_column >= p.k;
  if (!(a_plain || a_transposed) || !(b_plain || b_transposed)) return false;
  return blas_product(
      {p.m, p.n, p.k, a_plain ? p.a_row : p.a_column, b_plain ? p.b_row : p.b_column, p.c_row, !a_plain, !b_plain},
      p);
}

template <class T>
bool complex_loop(const gemm::Product<T>& p) {
  using Real = decltype(T::re);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      Real re = 0, im = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        const T x = p.a[i * p.a_row + q * p.a_column], y = p.b[q * p.b_row + j * p.b_column];
        re += x.re * y.re - x.im * y.im, im += x.re * y.im + x.im * y.re;
      }
      p.c[i * p.c_row + j] = p.bias ? sum_of(T{re, im}, p.bias[j]) : T{re, im};
    }
  return true;
}

// Selects the engine; if one refuses, the next is tried, and finally our own loops.
//
//                     x86-64                        aarch64
// b packed            oneDNN for 16 bits, int8      oneDNN for float32, bfloat16, int8
// float32, float64    own                           OpenBLAS
// bfloat16            oneDNN, where the processor   oneDNN, OpenBLAS, where processor and
//                     multiplies bfloat16           level multiply bfloat16
// complex             OpenBLAS                      OpenBLAS
// int8, uint8         oneDNN, where the processor   own
//                     has VNNI
// float16             oneDNN, where the processor   own
//                     has AVX512-FP16
// integers            own                           own
// Bytes added up in int32 are matmul_integer.cpp's.
//
// On x86-64 our own loops are as fast as the libraries, and need no code generated per shape. On
// aarch64 OpenBLAS has a kernel for each processor, written by hand, with SVE where that is wider; ours are
// compiled to NEON and take more instructions, by count and not by time (README.md). Complex numbers have no
// vector loop of our own.
#if defined(__aarch64__)
template <class T>
inline constexpr bool blas_is_faster = std::is_floating_point_v<T>;
#else
template <class T>
inline constexpr bool blas_is_faster = false;
#endif
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
template <>
inline constexpr bool blas_is_faster<bf16> = true;
#endif

template <class T, class Out>
bool one_product(const gemm::Product<T, Out>& p) {
  if constexpr (is_complex<T>) {
    return (p.all_m * p.all_n * p.k > 64 && by_blas(p)) || complex_loop(p);
  } else {
    if constexpr (gemm::is_half<T> || std::is_same_v<T, uint8_t>)
      if (by_onednn(p)) return true;
    if constexpr (blas_is_faster<T>)
      if (p.all_m > 1 && worth_a_call(p) && by_blas(p)) return true;
    return gemm::product(p);
  }
}

// Types whose engines DOVETAIL_CPU_AUTOTUNE compares.
template <class T, class Out>
inline constexpr bool tunable =
    std::is_same_v<T, Out> && (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bf16>);
template <class T>
bool product_by(Engine engine, const gemm::Product<T>& p) {
  if (engine == Engine::openblas) return by_blas(p);
  if constexpr (!std::is_same_v<T, double>)
    if (engine == Engine::onednn) return by_onednn(p);
  return engine == Engine::own && gemm::product(p);
}

// What the time of a product depends on. Large m are rounded up to four binary digits: lengths vary.
std::string kind_of(const char* dtype, const Batched& p, bool bias, bool packed) {
  int64_t m = p.m, unit = 1;
  while (m > 16 * unit) unit *= 2;
  m = divide_up(m, unit) * unit;
  char text[200];
  const int64_t sizes[] = {m, p.n, p.k, p.matrices};
  std::snprintf(text, sizeof text, "%s:%lldx%lldx%lld*%lld:%c%c%s%s:%u", dtype, static_cast<long long>(sizes[0]),
                static_cast<long long>(sizes[1]), static_cast<long long>(sizes[2]),
                static_cast<long long>(sizes[3]), p.a_column == 1 ? 'n' : 't', p.b_column == 1 ? 'n' : 't',
                bias ? ":bias" : "", packed ? ":packed" : "", dvt::host->num_threads(dvt::host));
  return text;
}

// ---- b packed: the host keeps a weight matrix in oneDNN's layout, or in that of our own loops

// Types for which that is faster than every product of unpacked operands.
template <class T>
inline constexpr bool packable = gemm::is_half<T> || std::is_same_v<T, uint8_t> || std::is_same_v<T, float>;
// Those that our own loops multiply.
#if defined(__aarch64__)
template <class T>
inline constexpr bool own_panels = false;
#else
template <class T>
inline constexpr bool own_panels = std::is_same_v<T, float>;
#endif

// Those whose sums round otherwise unpacked: each tile of an operand that the host has not packed packs its panel,
// so that the bits do not depend on whether b was used before. Not float32: our own loops have the same bits either
// way, and oneDNN's unpacked products on aarch64 are as fast; there the first use of b has other bits.
template <class T>
inline constexpr bool packed_by_tiles = gemm::is_half<T>;

struct Packed {
  const char* data = nullptr;  // nullptr: not packed
  bool by_tiles = false;
  onednn::Panels panels;
};

template <class T>
bool find_panels(const Batched& p, onednn::Panels& panels) {
  if (p.matrices != 1 || p.n == 1 || p.k == 1 || p.n * p.k < 32 * 32 || !served_by_onednn<T>()) return false;
  return onednn::panels({p.k, p.n, p.b_row, p.b_column, type_of<T>}, panels);
}
// Fewer rows read b as it is.
template <class T>
bool worth_panels(const Batched& p) {
  return p.matrices == 1 && p.m > 4 && p.n >= gemm::panel<T> && p.n * p.k >= 32 * 32;
}
template <class T>
uint64_t own_layout(const Batched& p) {
  return uint64_t(p.k) << 40 ^ uint64_t(p.n) << 8 ^ uint64_t(gemm::panel<T>);
}

template <class T>
Packed packed_operand(const dvt_call* call, const Batched& p) {
  Packed packed;
  const dvt_packed* const kept = call->packed && call->packed[1].data ? &call->packed[1] : nullptr;
  if constexpr (own_panels<T>) {
    if (kept && kept->layout == own_layout<T>(p)) packed.data = static_cast<const char*>(kept->data);
    return packed;
  }
  if ((!kept && !packed_by_tiles<T>) || !find_panels<T>(p, packed.panels)) return packed;
  if (kept && kept->layout == packed.panels.layout) packed.data = static_cast<const char*>(kept->data);
  else packed.by_tiles = packed_by_tiles<T>;
  return packed;
}

// Where tiles would each pack the same columns of b, which takes some 5 % of their time, the threads pack it once
// for all of them. With narrower vectors, which compute for longer, that is no faster.
template <class T>
inline constexpr bool shares_panels = std::is_floating_point_v<T> && sizeof(gemm::V<float>) == 64;

template <class T>
const T* shared_panels(const Batched& p, const Cut& tile, const T* b) {
  constexpr int64_t P = gemm::panel<T>, rows = 32, most_bytes = 16 << 20, worthwhile = 50'000'000;
  const int64_t bytes = gemm::packed_size(p.k, p.n, P) * int64_t(sizeof(T));
  if (p.matrices != 1 || p.m <= tile.rows || tile.rows < 64 || p.n < P || p.k <= 64 || bytes > most_bytes ||
      p.m * p.n * p.k < worthwhile)
    return nullptr;
  T* const panels = static_cast<T*>(scratch(Scratch::kernel_2, size_t(bytes)));
  if (!panels) return nullptr;
  if (p.b_column == 1)
    for_each_chunk(divide_up(p.k, rows), 1, [&](int64_t i) {
      const int64_t q = i * rows;
      gemm::pack_some(least(rows, p.k - q), p.n, b + q * p.b_row, p.b_row, 1, p.k * P, panels + q * P);
      return true;
    });
  else
    for_each_chunk(divide_up(p.n, P), 1, [&](int64_t i) {
      const int64_t j = i * P;
      gemm::pack_some(p.k, least(P, p.n - j), b + j * p.b_column, p.b_row, p.b_column, p.k * P, panels + j * p.k);
      return true;
    });
  return panels;
}

template <class T>
bool pack_panel(const Batched& p, const onednn::Panels& panels, int64_t i, const T* b, char* to) {
  const int64_t j = i * panels.columns;
  onednn::Weights one{p.k, least(panels.columns, p.n - j), p.b_row, p.b_column, type_of<T>};
  b += j * p.b_column;
  if constexpr (sizeof(T) == 2)
    if (p.b_row == 1 && p.b_column > 1) {  // oneDNN transposes 16-bit numbers one by one
      auto* const rows = static_cast<uint16_t*>(scratch(Scratch::operand_b, size_t(one.k * one.n) * sizeof(T)));
      if (!rows) return false;
      transpose(one.n, one.k, reinterpret_cast<const uint16_t*>(b), one.column, rows, one.n, std::identity());
      one.row = one.n, one.column = 1;
      return onednn::pack_panel(one, rows, to);
    }
  return onednn::pack_panel(one, b, to);
}

// Panel i, of b as the host has packed it or else packed here; nullptr: b is not packed, or memory is out.
template <class T>
const char* panel_of(const Batched& p, const Packed& packed, int64_t i, const T* b) {
  if (packed.data) return packed.data + uint64_t(i) * packed.panels.bytes;
  if (!packed.by_tiles) return nullptr;
  char* const own = static_cast<char*>(scratch(Scratch::kernel_2, packed.panels.bytes));
  return own && pack_panel(p, packed.panels, i, b, own) ? own : nullptr;
}

// False if oneDNN has no code for so few rows, or for a's strides.
template <class T, class Out>
bool panel_product(const gemm::Product<T, Out>& p, const char* panel) {
  return converted(p, [&](const onednn::Product& d, const float* bias, void* c) {
    return onednn::multiply_panel(d, p.a, panel, bias, c);
  });
}

// Tiles are rows by one panel.
Cut cut(Batched p, const onednn::Panels& panels) {
  p.n = panels.columns, p.matrices = panels.count;
  Cut c = cut(p, 16, panels.columns);
  c.across = panels.count, c.tiles *= panels.count;
  return c;
}

template <class T>
[[gnu::noinline]] dvt_status size_of_packed(Batched p, uint64_t* size, uint64_t* layout) {
  if (p.share_b_in_few_rows()) p.join_rows();
  if constexpr (own_panels<T>) {
    if (!worth_panels<T>(p)) return DVT_UNSUPPORTED;
    *size = uint64_t(gemm::packed_size(p.k, p.n, gemm::panel<T>)) * sizeof(T), *layout = own_layout<T>(p);
    return DVT_OK;
  }
  onednn::Panels panels;
  if (!find_panels<T>(p, panels)) return DVT_UNSUPPORTED;
  *size = panels.size, *layout = panels.layout;
  return DVT_OK;
}

template <class T>
[[gnu::noinline]] dvt_status pack_into(const Batched& p, const T* b, const dvt_packed* to) {
  if constexpr (own_panels<T>) {
    constexpr int64_t P = gemm::panel<T>;
    return for_each_chunk(divide_up(p.n, P), 4, [&](int64_t i) {
      const int64_t j = i * P;
      gemm::pack(p.k, least(P, p.n - j), b + j * p.b_column, p.b_row, p.b_column, P,
                 static_cast<T*>(to->data) + j * p.k);
      return true;
    });
  }
  onednn::Panels panels;
  if (!find_panels<T>(p, panels)) return DVT_OOM;  // pack_size has found them
  return for_each_chunk(panels.count, 1, [&](int64_t i) {
    return pack_panel(p, panels, i, b, static_cast<char*>(to->data) + uint64_t(i) * panels.bytes);
  });
}

// ---- calls

template <class T, class Out>
[[gnu::noinline]] dvt_status multiply(const dvt_call* call, Batched p) {
  const T *a = dvt::data<const T>(call->in[0]), *const b = dvt::data<const T>(call->in[1]);
  if (p.share_b_in_few_rows()) {
    T* const rows = static_cast<T*>(scratch(Scratch::rows, size_t(p.matrices * p.m * p.k) * sizeof(T)));
    if (!rows) return DVT_OOM;
    p.copy_rows(a, rows), p.join_rows(), a = rows;
  }
  const T* const bias = dvt::has_in(call, 2) ? dvt::data<const T>(call->in[2]) : nullptr;
  Out* const c = dvt::data<Out>(call->out[0]);
  if (p.matrices == 1 && p.m * p.n <= 4096 && p.m * p.n * p.k <= 100'000)  // nothing to split
    return one_product<T, Out>({p.m, p.n, p.k, a, p.a_row, p.a_column, b, p.b_row, p.b_column, c, p.n, 1, bias})
               ? DVT_OK
               : DVT_OOM;
  Packed packed;
  if constexpr (packable<T>) packed = packed_operand<T>(call, p);
  const Cut tile = !own_panels<T> && (packed.data || packed.by_tiles)
                       ? cut(p, packed.panels)
                       : cut(p, 16, 64, is_complex<T> || blas_is_faster<T>);
  const T* own = nullptr;
  if constexpr (own_panels<T>) own = reinterpret_cast<const T*>(packed.data);
  if constexpr (shares_panels<T>)
    if (!own) own = shared_panels(p, tile, b);
  const int64_t work = tile.rows * tile.columns * (p.k + 1);
  const auto all = [&](Engine engine) {
    return for_each_chunk(
        p.matrices * tile.tiles, uint64_t(work < 150'000 ? 150'000 / work + 1 : 1), [&](int64_t at) {
          const int64_t matrix = at / tile.tiles, i = at % tile.tiles / tile.across * tile.rows,
                        panel = at % tile.tiles % tile.across, j = panel * tile.columns;
          int64_t a_offset, b_offset;
          p.offsets(matrix, a_offset, b_offset);
          gemm::Product<T, Out> one{least(tile.rows, p.m - i),
                                    least(tile.columns, p.n - j),
                                    p.k,
                                    a + a_offset + i * p.a_row,
                                    p.a_row,
                                    p.a_column,
                                    b + b_offset + j * p.b_column,
                                    p.b_row,
                                    p.b_column,
                                    c + matrix * p.m * p.n + i * p.n + j,
                                    p.n,
                                    1,
                                    bias ? bias + j : nullptr,
                                    nullptr,
                                    p.m,
                                    p.n};
          if constexpr (std::is_floating_point_v<T>) one.panels = own ? own + j * p.k : nullptr;
          if constexpr (tunable<T, Out>)
            if (engine != Engine::usual) return product_by(engine, one);
          if constexpr (packable<T> && !own_panels<T>)
            if (const char* const weights = panel_of(p, packed, panel, b); weights && panel_product(one, weights))
              return true;
          return one_product(one);
        });
  };
  if constexpr (tunable<T, Out>)
    if (autotunes() && p.m * p.n * p.k * p.matrices >= 64 * 64 * 64) {
      static constexpr Engine engines[] = {Engine::own, Engine::openblas, Engine::onednn};
      const char* const dtype = std::is_same_v<T, bf16> ? "bf16" : sizeof(T) == 8 ? "f64" : "f32";
      return run_fastest(kind_of(dtype, p, bias, packed.data || packed.by_tiles), engines,
                         [&](Engine engine) { return all(engine) == DVT_OK; })
                 ? DVT_OK
                 : DVT_OOM;
    }
  return all(Engine::usual);
}

// The functions of a row, as thin as can be: matmul and linear share the rest.
template <dvt::Product (*product)(const dvt_call*), class T, class Out>
dvt_status run(dvt_device*, const dvt_call* call) {
  return multiply<T, Out>(call, Batched(product(call)));
}
template <dvt::Product (*product)(const dvt_call*), class T>
dvt_status pack_size(dvt_device*, const dvt_call* call, uint32_t, uint64_t* size, uint64_t* layout) {
  return size_of_packed<T>(Batched(product(call)), size, layout);
}
template <dvt::Product (*product)(const dvt_call*), class T>
dvt_status pack(dvt_device*, const dvt_call* call, uint32_t, const dvt_packed* to) {
  return pack_into<T>(Batched(product(call)), dvt::data<const T>(call->in[1]), to);
}

template <dvt::Product (*product)(const dvt_call*), class T, class Out = T>
dvt::Row row(const char* op, DLDataType type) {
  dvt::Row made(op, run<product, T, Out>);
  if (std::is_same_v<T, bf16> && may_multiply_bfloat16()) made.flags(DVT_K_FLUSHES_SUBNORMALS);
  if constexpr (packable<T>)
    return made.in(type, DVT_O_STRIDED)
        .in(type, DVT_O_STRIDED | DVT_O_PACKABLE)
        .pack(pack_size<product, T>, pack<product, T>);
  else return made.in(type, DVT_O_STRIDED).in(type, DVT_O_STRIDED);
}

// The result's dtype says all that matmul's attribute does: such rows serve its second version.
template <class T, class Out = T>
void add_matmul(Table& table, DLDataType type, DLDataType out) {
  table.add(row<dvt::product_of_matmul, T, Out>("dvt.matmul", type).version(2).out(out).kernel());
}

template <class T>
void add(Table& table, DLDataType type) {
  add_matmul<T>(table, type, type);
  table.add(row<dvt::product_of_linear, T>("dvt.linear", type).in(type, DVT_O_OPTIONAL).out(type).kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<bf16>(table, dvt::bf16);
  add<f16>(table, dvt::f16);
  add_matmul<bf16, float>(table, dvt::bf16, dvt::f32);
  add_matmul<f16, float>(table, dvt::f16, dvt::f32);
  add_matmul<int16_t, uint32_t>(table, dvt::i16, dvt::i32);
  // Wrapping sums of products have the same bits in signed and unsigned types.
  for (DLDataType t : {dvt::i8, dvt::u8}) add<uint8_t>(table, t);
  for (DLDataType t : {dvt::i16, dvt::u16}) add<uint16_t>(table, t);
  for (DLDataType t : {dvt::i32, dvt::u32}) add<uint32_t>(table, t);
  for (DLDataType t : {dvt::i64, dvt::u64}) add<uint64_t>(table, t);
  add<c64>(table, dvt::c64);
  add<c128>(table, dvt::c128);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
