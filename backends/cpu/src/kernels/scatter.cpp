// scatter: x with some slices along one axis replaced, by byte size, or joined with the updates, by dtype. Of
// repeated indices the last one wins, or they join in their order: results do not depend on the number of threads.
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

// ---- modes other than "set"
// --------------------------------------------------------------------------------------

template <class T>
constexpr bool is_float = T(0.5) != T(0);

struct Add {
  template <class T>
  DOVETAIL_CPU_INLINE T operator()(T a, T b) const {
    if constexpr (is_float<T>) return a + b;
    else return T(uint64_t(a) + uint64_t(b));  // wraps
  }
};
struct Multiply {
  template <class T>
  DOVETAIL_CPU_INLINE T operator()(T a, T b) const {
    if constexpr (is_float<T>) return a * b;
    else return T(uint64_t(a) * uint64_t(b));
  }
};
struct Max {
  template <class T>
  DOVETAIL_CPU_INLINE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  DOVETAIL_CPU_INLINE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

template <class Join, class T>
void join_row(const T* from, int64_t step, T* to, int64_t n) {
  if (step == 1) {
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) to[i] = Join()(to[i], from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = Join()(to[i], from[i * step]);
  }
}

template <class Join, class T>
void join_slice(const DLTensor* x, const Updates& u, int64_t axis, const T* from, T* to, int64_t inner) {
  const int last = x->ndim - 1;
  if (axis == last) return join_row<Join>(from, 0, to, 1);
  const int64_t n = x->shape[last];
  for (int64_t row = 0; row < inner / n; ++row, to += n) {
    int64_t at = 0, rest = row;
    for (int i = last; i-- > axis + 1; rest /= x->shape[i]) at += rest % x->shape[i] * u.stride[i];
    join_row<Join>(from + at, u.stride[last], to, n);
  }
}

// Joins the updates of the places [first, stop) of one position of the outer axes, in the order of the indices.
template <class Join, class T>
void join_range(const DLTensor* x, const Updates& u, int64_t axis, const int64_t* index, int64_t n, const T* from,
                T* slab, int64_t inner, int64_t first, int64_t stop) {
  const int64_t size = x->shape[axis];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = wrapped(index[i], size);
    if (place >= first && place < stop)
      join_slice<Join>(x, u, axis, from + i * u.stride[axis], slab + place * inner, inner);
  }
}

// A task owns a range of the places on the axis: it alone writes there, and looks for its own among all indices.
template <class Join, class T>
dvt_status join(const dvt_call* c) {
  const int64_t axis = dvt::Attrs(c).i64(0);
  const DLTensor *x = c->in[0], *updates = c->in[2];
  const int64_t size = x->shape[axis], n = c->in[1]->shape[0];
  const int64_t* index = dvt::data<const int64_t>(c->in[1]);
  if (dvt_status s = check_indices("scatter", index, n, axis, size)) return s;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x->ndim; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x->shape[i];

  const T *from = dvt::data<const T>(updates), *in = dvt::data<const T>(x);
  T* out = dvt::data<T>(c->out[0]);
  const Updates u(updates, x);
  constexpr int64_t least_work = 32768;
  const int64_t work = (n + size) * inner, threads = dvt::host->num_threads(dvt::host);
  int64_t ranges = outer >= threads ? 1 : (threads + outer - 1) / outer;
  if (ranges > size) ranges = size;
  if (ranges > 1 + work / least_work) ranges = 1 + work / least_work;
  dvt::parallel_for(uint64_t(outer * ranges), uint64_t(1 + least_work * ranges / work),
                    [&, axis, n, inner](uint64_t begin, uint64_t end, uint32_t) {
                      for (uint64_t task = begin; task < end; ++task) {
                        const int64_t o = int64_t(task) / ranges, range = int64_t(task) % ranges;
                        const int64_t first = size * range / ranges, stop = size * (range + 1) / ranges;
                        int64_t at = 0, rest = o;
                        for (int64_t i = axis; i-- > 0; rest /= x->shape[i]) at += rest % x->shape[i] * u.stride[i];
                        T* const slab = out + o * size * inner;
                        if (out != in)
                          std::memcpy(slab + first * inner, in + (o * size + first) * inner,
                                      size_t((stop - first) * inner) * sizeof(T));
                        join_range<Join>(x, u, axis, index, n, from + at, slab, inner, first, stop);
                      }
                    });
  return DVT_OK;
}

// Bits is the type of T's size that mode="set" copies, and as which integers add up and multiply. Bools do that as
// Max and Min.
template <class T, class Bits, class Sum = Add, class Product = Multiply>
dvt_status scatter_in_mode(dvt_device* device, const dvt_call* c) {
  using Wrapping = std::conditional_t<std::is_integral_v<T>, Bits, T>;
  const dvt::Attrs a(c);
  if (a.is(1, "add")) return join<Sum, Wrapping>(c);
  if (a.is(1, "max")) return join<Max, T>(c);
  if (a.is(1, "min")) return join<Min, T>(c);
  if (a.is(1, "multiply")) return join<Product, Wrapping>(c);
  return scatter<Bits>(device, c);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  const auto add = [&](unsigned bits, dvt::Row::Run run) {
    const DLDataType type = dvt::any(bits);
    dvt::Row row("dvt.scatter", run);
    row.in(type, DVT_O_ALIAS).in(dvt::i64).in(type, DVT_O_STRIDED | DVT_O_HOST_SCALAR).out(type).deterministic();
    t.add(row.kernel());
  };
  const auto add_typed = [&](DLDataType type, dvt::Row::Run run) {
    dvt::Row row("dvt.scatter", run);
    row.in(type, DVT_O_ALIAS).in(dvt::i64).in(type, DVT_O_STRIDED | DVT_O_HOST_SCALAR).out(type).deterministic();
    t.add(row.version(2).kernel());
  };
  add_typed(dvt::boolean, scatter_in_mode<uint8_t, uint8_t, Max, Min>);
  add_typed(dvt::i8, scatter_in_mode<int8_t, uint8_t>);
  add_typed(dvt::u8, scatter_in_mode<uint8_t, uint8_t>);
  add_typed(dvt::i16, scatter_in_mode<int16_t, uint16_t>);
  add_typed(dvt::u16, scatter_in_mode<uint16_t, uint16_t>);
  add_typed(dvt::i32, scatter_in_mode<int32_t, uint32_t>);
  add_typed(dvt::u32, scatter_in_mode<uint32_t, uint32_t>);
  add_typed(dvt::f32, scatter_in_mode<float, uint32_t>);
  add_typed(dvt::i64, scatter_in_mode<int64_t, uint64_t>);
  add_typed(dvt::u64, scatter_in_mode<uint64_t, uint64_t>);
  add_typed(dvt::f64, scatter_in_mode<double, uint64_t>);
  add(8, scatter<uint8_t>);
  add(16, scatter<uint16_t>);
  add(32, scatter<uint32_t>);
  add(64, scatter<uint64_t>);
  add(128, scatter<Pair>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
