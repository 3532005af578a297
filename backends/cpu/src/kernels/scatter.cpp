// scatter: x with some slices along one axis replaced, by byte size. Of repeated indices the last one wins.
#include <cstring>

#include "simd/indices.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// The updates' strides for the axes of x, 0 where they broadcast. Missing leading axes broadcast too.
struct Updates {
  int64_t stride[DVT_MAX_NDIM];
  Updates(const DLTensor* u, const DLTensor* x) {
    const int missing = x->ndim - u->ndim;
    for (int i = 0; i < x->ndim; ++i)
      stride[i] = i < missing || u->shape[i - missing] == 1 ? 0 : u->strides[i - missing];
  }
};

// Copies the slice (outer, i) of the updates to `to`: `inner` elements, with x's shape after `axis`.
template <class T>
void write_slice(const DLTensor* x, const Updates& u, int64_t axis, const T* from, T* to, int64_t inner) {
  const int last = x->ndim - 1;
  if (axis == last) {
    *to = *from;
    return;
  }
  const int64_t n = x->shape[last], step = u.stride[last];
  for (int64_t row = 0; row < inner / n; ++row, to += n) {
    int64_t at = 0, rest = row;
    for (int i = last; i-- > axis + 1; rest /= x->shape[i]) at += rest % x->shape[i] * u.stride[i];
    if (step == 1) std::memcpy(to, from + at, size_t(n) * sizeof(T));
    else
      for (int64_t i = 0; i < n; ++i) to[i] = from[at + i * step];
  }
}

template <class T>
dvt_status scatter(dvt_device*, const dvt_call* c) {
  const int64_t axis = dvt::Attrs(c).i64(0);
  const DLTensor *x = c->in[0], *updates = c->in[2];
  const int64_t size = x->shape[axis], n = c->in[1]->shape[0];
  const int64_t* index = dvt::data<const int64_t>(c->in[1]);
  if (dvt_status s = check_indices("scatter", index, n, axis, size)) return s;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x->ndim; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x->shape[i];

  const T* from = dvt::data<const T>(updates);
  T* out = dvt::data<T>(c->out[0]);
  const uint64_t slab = uint64_t(size * inner);  // elements of one position of the outer axes
  const bool in_place = out == dvt::data<T>(x);
  const Updates u(updates, x);
  dvt::parallel_for(uint64_t(outer), 1 + 16384 / slab, [&, axis, n, inner](uint64_t begin, uint64_t end, uint32_t) {
    if (!in_place)
      std::memcpy(out + begin * slab, dvt::data<const T>(x) + begin * slab, (end - begin) * slab * sizeof(T));
    for (uint64_t o = begin; o < end; ++o) {
      int64_t at = 0, rest = int64_t(o);
      for (int64_t i = axis; i-- > 0; rest /= x->shape[i]) at += rest % x->shape[i] * u.stride[i];
      for (int64_t i = 0; i < n; ++i)
        write_slice(x, u, axis, from + at + i * u.stride[axis],
                    out + int64_t(o * slab) + wrapped(index[i], size) * inner, inner);
    }
  });
  return DVT_OK;
}
struct Pair {
  uint64_t half[2];
};
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run) {
    const DLDataType type = dvt::any(bits);
    dvt::Row row("dvt.scatter", run);
    row.in(type, DVT_O_ALIAS).in(dvt::i64).in(type, DVT_O_STRIDED | DVT_O_HOST_SCALAR).out(type).deterministic();
    t.add(row.kernel());
  };
  add(8, scatter<uint8_t>);
  add(16, scatter<uint16_t>);
  add(32, scatter<uint32_t>);
  add(64, scatter<uint64_t>);
  add(128, scatter<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
