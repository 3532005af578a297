// take, and embedding, which is take on axis 0: slices along one axis, by byte size. Every index is checked before
// anything is written.
#include <algorithm>
#include <cstring>

#include "simd/indices.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
struct Geometry {  // x is (outer, size, inner), the result (outer, n, inner)
  int64_t outer = 1, size, inner = 1, n;
  Geometry(const DLTensor* x, const DLTensor* indices, int64_t axis) : size(x->shape[axis]), n(dvt::size(indices)) {
    for (int i = 0; i < x->ndim; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x->shape[i];
  }
};

// copy(i, at): element or slice i of the result is the one at `at` in x.
template <class Copy>
void for_each_index(const Geometry& g, uint64_t grain, const int64_t* index, Copy copy) {
  dvt::parallel_for(uint64_t(g.outer * g.n), grain, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t i = int64_t(begin), k = i % g.n, first = i / g.n * g.size; i < int64_t(end);
         first += g.size, k = 0)
      for (const int64_t stop = std::min(int64_t(end), i - k + g.n); i < stop; ++i, ++k)
        copy(i, first + wrapped(index[k], g.size));
  });
}

template <class T>
void take_elements(const Geometry& g, const T* x, const int64_t* index, T* out) {
  for_each_index(g, 16384, index, [=](int64_t i, int64_t at) { out[i] = x[at]; });
}

void take_slices(const Geometry& g, size_t bytes, const char* x, const int64_t* index, char* out) {
  for_each_index(g, 1 + 65536 / bytes, index, [=](int64_t i, int64_t at) {
    std::memcpy(out + size_t(i) * bytes, x + size_t(at) * bytes, bytes);
  });
}

template <class T>
dvt_status take_from(const char* op, const DLTensor* tensor, const DLTensor* indices, int64_t axis,
                     const DLTensor* result) {
  const Geometry g(tensor, indices, axis);
  const int64_t* index = dvt::data<const int64_t>(indices);
  if (dvt_status s = check_indices(op, index, g.n, axis, g.size)) return s;
  const T* x = dvt::data<const T>(tensor);
  T* out = dvt::data<T>(result);
  if (g.inner == 1) take_elements(g, x, index, out);
  else
    take_slices(g, size_t(g.inner) * sizeof(T), reinterpret_cast<const char*>(x), index,
                reinterpret_cast<char*>(out));
  return DVT_OK;
}

template <class T>
dvt_status take(dvt_device*, const dvt_call* c) {
  return take_from<T>("take", c->in[0], c->in[1], dvt::Attrs(c).i64(0), c->out[0]);
}
template <class T>
dvt_status embedding(dvt_device*, const dvt_call* c) {
  return take_from<T>("embedding", c->in[1], c->in[0], 0, c->out[0]);
}
struct Pair {
  uint64_t half[2];
};
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run_take, dvt::Row::Run run_embedding) {
    const DLDataType type = dvt::any(bits);
    dvt::Row row("dvt.take", run_take), rows("dvt.embedding", run_embedding);
    t.add(row.in(type).in(dvt::i64, DVT_O_HOST_SCALAR).out(type).deterministic().kernel());
    t.add(rows.in(dvt::i64, DVT_O_HOST_SCALAR).in(type).out(type).deterministic().kernel());
  };
  add(8, take<uint8_t>, embedding<uint8_t>);
  add(16, take<uint16_t>, embedding<uint16_t>);
  add(32, take<uint32_t>, embedding<uint32_t>);
  add(64, take<uint64_t>, embedding<uint64_t>);
  add(128, take<Pair>, embedding<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
