// take: slices along one axis, by byte size. Every index is checked before anything is written.
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

template <class T>
void take_elements(const Geometry& g, const T* x, const int64_t* index, T* out) {
  dvt::parallel_for(uint64_t(g.outer * g.n), 16384, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i)
      out[i] = x[int64_t(i) / g.n * g.size + wrapped(index[int64_t(i) % g.n], g.size)];
  });
}

void take_slices(const Geometry& g, size_t bytes, const char* x, const int64_t* index, char* out) {
  dvt::parallel_for(uint64_t(g.outer * g.n), 1 + 65536 / bytes, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) {
      const int64_t at = int64_t(i) / g.n * g.size + wrapped(index[int64_t(i) % g.n], g.size);
      std::memcpy(out + i * bytes, x + size_t(at) * bytes, bytes);
    }
  });
}

template <class T>
dvt_status take(dvt_device*, const dvt_call* c) {
  const int64_t axis = dvt::Attrs(c).i64(0);
  const Geometry g(c->in[0], c->in[1], axis);
  const int64_t* index = dvt::data<const int64_t>(c->in[1]);
  if (dvt_status s = check_indices("take", index, g.n, axis, g.size)) return s;
  const T* x = dvt::data<const T>(c->in[0]);
  T* out = dvt::data<T>(c->out[0]);
  if (g.inner == 1) take_elements(g, x, index, out);
  else
    take_slices(g, size_t(g.inner) * sizeof(T), reinterpret_cast<const char*>(x), index,
                reinterpret_cast<char*>(out));
  return DVT_OK;
}
struct Pair {
  uint64_t half[2];
};
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run) {
    dvt::Row row("dvt.take", run);
    row.in(dvt::any(bits)).in(dvt::i64, DVT_O_HOST_SCALAR).out(dvt::any(bits)).deterministic();
    t.add(row.kernel());
  };
  add(8, take<uint8_t>);
  add(16, take<uint16_t>);
  add(32, take<uint32_t>);
  add(64, take<uint64_t>);
  add(128, take<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
