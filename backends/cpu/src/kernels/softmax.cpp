// softmax, log_softmax along one axis.
#include <atomic>

#include "simd/axis_rows.hpp"
#include "simd/softmax.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;

// softmax_row for `width` adjacent rows, of which n are used.
template <class T, bool logarithm>
[[gnu::noinline]] void softmax_columns(const T* x, int64_t stride, T* y, int64_t out_stride, int64_t size,
                                       int64_t n) {
  V<T> top = part(x, 0, n);
  for (int64_t i = 1; i < size; ++i) top = stdx::max(part(x, i * stride, n), top);
  stdx::where(top - top != 0, top) = 0;
  V<T> ones = 0, run = 0;
  reduction::Pairs<reduction::Sum<T>, V<T>> runs;
  for (int64_t i = 0; i < size; ++i) {
    const V<T> v = part(x, i * stride, n);
    V<T> e = rows::exp(v - top);
    if constexpr (!logarithm) put(e, y, i * out_stride, n);
    stdx::where(v == top, ones) += 1;
    stdx::where(v == top, e) = 0;
    run += e;
    if (i % 8 == 7) runs.add(run), run = 0;
  }
  const V<T> sum = ones + (runs.total() + run);
  if constexpr (logarithm) {
    T lane[width<T>];
    sum.copy_to(lane, stdx::element_aligned);
    for (T& l : lane) l = std::log(l);
    const V<T> log_sum = load(lane);
    for (int64_t i = 0; i < size; ++i) put((part(x, i * stride, n) - top) - log_sum, y, i * out_stride, n);
  } else {
    for (int64_t i = 0; i < size; ++i) put(part(y, i * out_stride, n) / sum, y, i * out_stride, n);
  }
}

// Copies n of `width` adjacent elements of each row.
template <class T>
DOVETAIL_CPU_INLINE void copy_columns(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t rows,
                                      int64_t n) {
  constexpr int64_t soon = 8;  // rows, whose distance hides from the processor that they follow
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_prefetch(from + (i + soon) * from_row), __builtin_prefetch(to + (i + soon) * to_row, 1);
    put(part(from, i * from_row, n), to, i * to_row, n);
  }
}

template <class In, bool logarithm>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const AxisRows rows(c->in[0], dvt::Attrs(c).i64(0));
  const int64_t size = rows.size, inner = rows.inner;
  const In* const x = dvt::data<const In>(c->in[0]);
  In* const out = dvt::data<In>(c->out[0]);
  // Adjacent rows share a vector.
  const bool columns = !is_half<In> && inner > 1 && rows.stride != 1 && rows.inner_is_dense();
  const int64_t block = columns ? width<T> : 1, blocks = divide_up(inner, block);
  // Rows of a large array that are a multiple of 1024 bytes apart evict each other from the caches between passes,
  // which a copy in the second cache does not.
  const int64_t apart = rows.stride * int64_t(sizeof(T)), copied = size * block * int64_t(sizeof(T));
  const bool copies = columns && apart % 1024 == 0 && size * apart > 1 << 20 && copied <= 128 << 10;
  const bool buffers = copies || (!columns && (is_half<In> || inner > 1));
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(rows.outer * blocks), uint64_t(8192 / (size * block) + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      T* buffer = nullptr;
                      if (buffers) {
                        buffer = static_cast<T*>(scratch(Scratch::kernel, size_t(copied)));
                        if (!buffer) return complete.store(false, std::memory_order_relaxed);
                      }
                      for (int64_t at = int64_t(begin); at < int64_t(end); ++at) {
                        const int64_t o = at / blocks, i = at % blocks * block;
                        const In* const from = x + rows.offset(o, i);
                        In* const to = out + o * size * inner + i;
                        if constexpr (!is_half<In>) {
                          if (columns) {
                            const int64_t n = least(inner - i, block);
                            if (buffer) {
                              copy_columns(from, rows.stride, buffer, block, size, n);
                              softmax_columns<T, logarithm>(buffer, block, buffer, block, size, n);
                              copy_columns(buffer, block, to, inner, size, n);
                            } else {
                              softmax_columns<T, logarithm>(from, rows.stride, to, inner, size, n);
                            }
                            continue;
                          }
                          if (inner == 1) {
                            if (rows.stride == 1 || size == 1) {
                              softmax_row<T, logarithm>(from, to, size);
                            } else {
                              for (int64_t k = 0; k < size; ++k) to[k] = from[k * rows.stride];
                              softmax_row<T, logarithm>(to, to, size);
                            }
                            continue;
                          }
                        }
                        if constexpr (!is_half<In>)
                          for (int64_t k = 0; k < size; ++k) buffer[k] = from[k * rows.stride];
                        else widened(from, rows.stride, size, buffer);
                        softmax_row<T, logarithm>(buffer, buffer, size);
                        put_row(buffer, to, inner, size);
                      }
                    });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.softmax", run<T, false>).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
  table.add(dvt::Row("dvt.log_softmax", run<T, true>).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
