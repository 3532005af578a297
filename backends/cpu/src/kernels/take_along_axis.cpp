// take_along_axis: out[.., i, ..] = x[.., indices[.., i, ..], ..]; the other axes broadcast. By byte size.
#include <cstring>

#include "simd/indices.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// Strides for the axes of the output; 0 for x along `axis`, which the index replaces.
struct IterationSpace {
  int ndim;
  int64_t shape[DVT_MAX_NDIM]{}, x[DVT_MAX_NDIM]{}, index[DVT_MAX_NDIM]{};
  int64_t axis, axis_size, axis_stride;

  IterationSpace(const dvt_call* c, int64_t along) : ndim(c->out[0]->ndim), axis(along) {
    const DLTensor *values = c->in[0], *indices = c->in[1];
    axis_size = values->shape[axis], axis_stride = values->strides[axis];
    for (int i = 0; i < ndim; ++i) {
      shape[i] = c->out[0]->shape[i];
      x[i] = i == axis || values->shape[i] == 1 ? 0 : values->strides[i];
      index[i] = indices->shape[i] == 1 ? 0 : indices->strides[i];
    }
  }
};

// out[i] = x[i * x_step + index[i] * stride] for indices that are on the axis, of `size`; negative ones count from
// its end where `wrap`.
template <bool wrap, class T>
DOVETAIL_CPU_INLINE void take_valid(const T* x, int64_t x_step, int64_t stride, const int64_t* index,
                                    int64_t index_step, int64_t size, int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = index[i * index_step];
    out[i] = x[i * x_step + (wrap ? wrapped(k, size) : k) * stride];
  }
}

// out[i] = x[index[i]], four at a time, up to the first four with an index that is negative or too large: how many.
template <class T>
DOVETAIL_CPU_INLINE int64_t take_plain(const T* x, const int64_t* index, int64_t size, int64_t n, T* out) {
  const uint64_t limit = uint64_t(size);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const uint64_t a = uint64_t(index[i]), b = uint64_t(index[i + 1]), c = uint64_t(index[i + 2]),
                   d = uint64_t(index[i + 3]);
    if (a >= limit || b >= limit || c >= limit || d >= limit) [[unlikely]]
      return i;
    const T all[] = {x[a], x[b], x[c], x[d]};
    std::memcpy(out + i, all, sizeof all);
  }
  for (; i < n && uint64_t(index[i]) < limit; ++i) out[i] = x[index[i]];
  return i;
}

// Reads a row ahead where the indices would read most of its cache lines, in an order that no processor foresees.
template <class T>
DOVETAIL_CPU_INLINE void prefetch_row(const T* x, int64_t size, int64_t indices) {
  constexpr int64_t line = 64 / int64_t(sizeof(T)), fewest = 33, most = 4096;  // lines that are worth it, that fit
  if (size < fewest * line || size > line * least(indices, most)) return;
  for (int64_t i = 0; i < size; i += line) __builtin_prefetch(x + i);
}

enum class Indices { plain, negative, bad };  // all from 0 on; some count from the end; some are not on the axis

// The top bit of the result: an index is less than `first` or not less than `size`.
DOVETAIL_CPU_INLINE uint64_t outside(const int64_t* index, int64_t step, int64_t first, int64_t size, int64_t n) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t k = uint64_t(index[i * step]);
    bits |= (k - uint64_t(first)) | (uint64_t(size - 1) - k);
  }
  return bits;
}
DOVETAIL_CPU_INLINE Indices examine(const int64_t* index, int64_t step, int64_t size, int64_t n) {
  if (!(outside(index, step, 0, size, n) >> 63)) return Indices::plain;
  return outside(index, step, -size, size, n) >> 63 ? Indices::bad : Indices::negative;
}

// Elements of one row of the output, each with an index of its own; false if one of those is not on the axis. But
// for plain indices into a contiguous row, a block of indices is examined first, so that elements are taken without
// a question.
template <class T>
bool take_row(const IterationSpace& space, const T* x, const int64_t* index, int64_t n, T* out) {
  constexpr int64_t block = 512;
  const int last = space.ndim - 1;
  const int64_t x_step = space.x[last], index_step = space.index[last], size = space.axis_size,
                stride = space.axis_stride;
  const bool contiguous = index_step == 1 && stride == 1 && x_step == 0;
  if (contiguous) prefetch_row(x, size, n);
  for (int64_t begin = 0, count; begin < n; begin += count) {
    if (contiguous) begin += take_plain(x, index + begin, size, n - begin, out + begin);
    count = least(block, n - begin);
    const int64_t* const at = index + begin * index_step;
    const Indices kind = index_step == 1 ? examine(at, 1, size, count) : examine(at, index_step, size, count);
    if (kind == Indices::bad) return false;
    const T* const from = x + begin * x_step;
    if (contiguous) take_valid<true>(from, 0, 1, at, 1, size, count, out + begin);
    else if (kind == Indices::negative)
      take_valid<true>(from, x_step, stride, at, index_step, size, count, out + begin);
    else take_valid<false>(from, x_step, stride, at, index_step, size, count, out + begin);
  }
  return true;
}

template <class T>
dvt_status take_along_axis(dvt_device*, const dvt_call* c) {
  const IterationSpace space(c, dvt::Attrs(c).i64(0));
  const int last = space.ndim - 1;
  const int64_t n = space.shape[last], rows = dvt::size(c->out[0]) / n;
  const int64_t indices = space.index[last] ? n : 1, run = n / indices;  // of a row, and elements that each serves
  const T* x = dvt::data<const T>(c->in[0]);
  const int64_t* index = dvt::data<const int64_t>(c->in[1]);
  T* out = dvt::data<T>(c->out[0]);
  bool bad = false;  // an index is out of range
  int64_t which = 0;
  dvt::parallel_for(uint64_t(rows), uint64_t(1 + 16384 / n), [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t row = begin; row < end; ++row) {
      int64_t from = 0, at = 0, rest = int64_t(row);
      for (int i = last; i-- > 0; rest /= space.shape[i]) {
        from += rest % space.shape[i] * space.x[i];
        at += rest % space.shape[i] * space.index[i];
      }
      T* const to_row = out + int64_t(row) * n;
      if (run == 1 && space.axis_size && take_row(space, x + from, index + at, n, to_row)) continue;
      for (int64_t i = 0; i < indices; ++i) {
        const int64_t k = index[at + i * space.index[last]];
        if (!on_axis(k, space.axis_size)) {
          __atomic_store_n(&which, k, __ATOMIC_RELAXED);
          __atomic_store_n(&bad, true, __ATOMIC_RELAXED);
          return;
        }
        const T* const source = x + from + i * space.x[last] + wrapped(k, space.axis_size) * space.axis_stride;
        T* const to = to_row + i;
        for (int64_t j = 0; j < run; ++j) to[j] = source[j * space.x[last]];
      }
    }
  });
  return bad ? fail_index("take_along_axis", which, space.axis, space.axis_size) : DVT_OK;
}
struct Pair {
  uint64_t half[2];
};
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run) {
    dvt::Row row("dvt.take_along_axis", run);
    row.in(dvt::any(bits), DVT_O_STRIDED).in(dvt::i64, DVT_O_STRIDED).out(dvt::any(bits)).deterministic();
    t.add(row.kernel());
  };
  add(8, take_along_axis<uint8_t>);
  add(16, take_along_axis<uint16_t>);
  add(32, take_along_axis<uint32_t>);
  add(64, take_along_axis<uint64_t>);
  add(128, take_along_axis<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
