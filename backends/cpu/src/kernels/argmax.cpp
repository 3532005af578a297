// argmax, argmin: the first of equal elements; NaN wins. Over one axis, or over all elements in row-major
// order.
#include "simd/reduce.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace reduction;
template <class T>
using Compared = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float, T>;

template <class Op, class T = typename Op::Type>
DOVETAIL_CPU_INLINE bool beats(T a, T b) {  // equal: no; NaN: only over non-NaN
  return Op::combine(b, a) != b && b == b;
}

// Of the elements so far; the value is of the type in which they are compared.
struct Best {
  char value[sizeof(uint64_t)] = {};
  int64_t index = 0;
  bool found = false;
};

// The first of n elements that equals `value`, which one does; NaN equals NaN.
template <class T>
DOVETAIL_CPU_INLINE int64_t first_equal(const T* x, int64_t n, T value) {
  constexpr int64_t W = V<T>::size();
  const bool nan = value != value;
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const V<T> u(x + i, stdx::element_aligned);
    if (stdx::any_of(nan ? u != u : u == value)) break;
  }
  while (nan ? x[i] == x[i] : x[i] != value) ++i;
  return i;
}

// Elements [0, n) at x, `stride` apart, numbered from `first`.
template <class In, class Op>
void search_row(const void* data, int64_t stride, int64_t n, int64_t first, Best& best) {
  using T = typename Op::Type;
  T buffer[run_length], so_far;
  const In* const x = static_cast<const In*>(data);
  for (int64_t i = 0; i < n; i += run_length) {
    const int64_t m = n - i < run_length ? n - i : run_length;
    const T* run = Loops<In, Op>::fetch(x + i * stride, stride, m, buffer);
    const T value = combine_run<Op>(run, m);
    std::memcpy(&so_far, best.value, sizeof so_far);
    if (best.found && !beats<Op>(value, so_far)) continue;
    std::memcpy(best.value, &value, sizeof value);
    best.index = first + i + first_equal(run, m, value), best.found = true;
  }
}

// Contiguous results: one pass over the axis keeps the best of each column.
template <class In, class Op>
void search_columns(const void* data, const Axis& axis, int64_t columns, int64_t* out, int64_t out_stride) {
  using T = typename Op::Type;
  T best[column_block];
  int64_t index[column_block];
  const In* const x = static_cast<const In*>(data);
  for (int64_t j = 0; j < columns; ++j) best[j] = Load<In, T>::one(x[j]), index[j] = 0;
  for (int64_t i = 1; i < axis.size; ++i) {
    const In* row = x + i * axis.stride;
    for (int64_t j = 0; j < columns; ++j) {
      const T value = Load<In, T>::one(row[j]);
      const bool better = beats<Op>(value, best[j]);
      best[j] = better ? value : best[j];
      index[j] = better ? i : index[j];
    }
  }
  for (int64_t j = 0; j < columns; ++j) out[j * out_stride] = index[j];
}

// For elements of a type.
struct Search {
  size_t size;
  void (*row)(const void* x, int64_t stride, int64_t n, int64_t first, Best& best);
  void (*columns)(const void* x, const Axis& axis, int64_t columns, int64_t* out, int64_t out_stride);
};

int64_t over_everything(const Search& search, const DLTensor* x, const char* data) {
  Best best;
  if (dvt::is_dense(x)) {
    search.row(data, 1, dvt::size(x), 0, best);
    return best.index;
  }
  const int last = x->ndim - 1;
  const int64_t n = x->shape[last], rows = dvt::size(x) / n;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offset = 0, rest = r;
    for (int i = last; i-- > 0; rest /= x->shape[i]) offset += rest % x->shape[i] * x->strides[i];
    search.row(data + offset * int64_t(search.size), x->strides[last], n, r * n, best);
  }
  return best.index;
}

void along_axis(const Search& search, const DLTensor* x, int64_t axis, const char* data, int64_t* out) {
  const Axis along{x->shape[axis], x->strides[axis], 0};
  const Plan p = plan(x, 1u << axis);
  const int64_t size = p.column < 0 ? 1 : p.kept[p.column].size, blocks = divide_up(size, column_block);
  dvt::parallel_for(uint64_t(p.units()), p.grain(), [&](uint64_t begin, uint64_t end, uint32_t) {
    for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
      int64_t at;
      const char* const from = data + p.kept_offset(i / blocks, at) * int64_t(search.size);
      if (p.column < 0) {
        Best best;
        search.row(from, along.stride, along.size, 0, best);
        out[at] = best.index;
      } else {
        const int64_t step = p.kept[p.column].out_stride, first = i % blocks * column_block;
        const int64_t n = least(size - first, column_block);
        search.columns(from + first * int64_t(search.size), along, n, out + at + first * step, step);
      }
    }
  });
}

dvt_status run(const dvt_call* c, const Search& search) {
  const char* const data = dvt::data<const char>(c->in[0]);
  int64_t* const out = dvt::data<int64_t>(c->out[0]);
  const dvt::Attrs a(c);
  if (a.given(0)) along_axis(search, c->in[0], a.i64(0), data, out);
  else *out = over_everything(search, c->in[0], data);
  return DVT_OK;
}
template <class T, template <class> class Extremum>
dvt_status run(dvt_device*, const dvt_call* c) {
  using Op = Extremum<Compared<T>>;
  return run(c, {sizeof(T), search_row<T, Op>, search_columns<T, Op>});
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.argmax", run<T, Max>).in(type, DVT_O_STRIDED).out(dvt::i64).deterministic().kernel());
  table.add(dvt::Row("dvt.argmin", run<T, Min>).in(type, DVT_O_STRIDED).out(dvt::i64).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
  add<int8_t>(table, dvt::i8);
  add<int16_t>(table, dvt::i16);
  add<int32_t>(table, dvt::i32);
  add<int64_t>(table, dvt::i64);
  add<uint8_t>(table, dvt::u8);
  add<uint16_t>(table, dvt::u16);
  add<uint32_t>(table, dvt::u32);
  add<uint64_t>(table, dvt::u64);
  add<uint8_t>(table, dvt::boolean);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
