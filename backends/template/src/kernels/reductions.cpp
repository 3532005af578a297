// sum and max over axes.
#include <type_traits>

#include "kernels.hpp"

namespace {
// Pairwise summation: the error grows with the logarithm of the number of terms. level[i] holds a sum of 2^i terms
// if n has bit i.
template <class T>
struct Sum {
  T level[64];
  uint64_t n = 0;
  void take(T x) {
    int i = 0;
    for (uint64_t full = n++; full & 1; full >>= 1) x = level[i++] + x;
    level[i] = x;
  }
  T result() const {
    T x = 0;
    for (int i = 0; i < 64; ++i)
      if (n >> i & 1) x = level[i] + x;
    return x;
  }
};

template <class T>
struct Max {
  T most{};
  bool any = false;
  void take(T x) {
    if (!any || x > most || x != x) most = most == most ? x : most;  // NaN wins, and stays
    any = true;
  }
  T result() const { return most; }
};

// Integers are summed as uint64, so they wrap.
template <class T>
using SumOf = Sum<std::conditional_t<std::is_integral_v<T>, uint64_t, T>>;

template <class T, class Fold>
void reduce(const dvt_call* c) {
  const DLTensor* x = c->in[0];
  int n_kept = 0, n_reduced = 0;
  int64_t kept_shape[DVT_MAX_NDIM], kept_strides[DVT_MAX_NDIM], shape[DVT_MAX_NDIM], strides[DVT_MAX_NDIM];
  const dvt::Ints axes = dvt::Attrs(c).i64s(0);  // ascending, none negative
  int64_t terms = 1;
  const int64_t* next = axes.begin();
  for (int axis = 0; axis < x->ndim; ++axis)
    if (next != axes.end() && *next == axis) {
      shape[n_reduced] = x->shape[axis], strides[n_reduced++] = x->strides[axis];
      terms *= x->shape[axis], ++next;
    } else {
      kept_shape[n_kept] = x->shape[axis], kept_strides[n_kept++] = x->strides[axis];
    }
  T* out = dvt::data<T>(c->out[0]);
  Iteration<1> results{n_kept, kept_shape, {kept_strides}};
  for (int64_t left = dvt::size(c->out[0]); left > 0; --left, results.next()) {
    const T* from = dvt::data<const T>(x) + results.at[0];
    Fold fold;
    Iteration<1> term{n_reduced, shape, {strides}};
    for (int64_t i = 0; i < terms; ++i, term.next()) fold.take(from[term.at[0]]);
    *out++ = T(fold.result());
  }
}

template <class T, class Fold>
void add(dvt::KernelTable& table, const char* op) {
  dvt::Row row(op, run<reduce<T, Fold>>);
  table.add(row.in(dvt::dtype_of<T>(), DVT_O_STRIDED).out(dvt::dtype_of<T>()).deterministic());
}
}  // namespace

void add_reductions(dvt::KernelTable& table) {
  const auto numbers = Floats() + Signed() + Unsigned() + Types<bool>();
  for_each_type(numbers, [&](auto t) { add<decltype(t), SumOf<decltype(t)>>(table, "dvt.sum"); });
  for_each_type(numbers, [&](auto t) { add<decltype(t), Max<decltype(t)>>(table, "dvt.max"); });
}
