#include "linalg/rows.hpp"

#include "linalg/matrices.hpp"

namespace dovetail::cpu {
namespace {
using Int = int32_t;

// Sides up to here have workspaces that LAPACK's 32-bit integers count.
constexpr int64_t longest = 16384;

template <class T>
dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const char* reason = nullptr;
  if (!Lapack<T>::get()) reason = "there is no OpenBLAS that works on this processor";
  for (uint32_t i = 0; i < c->n_in; ++i)
    for (int32_t k = c->in[i]->ndim - 2; k < c->in[i]->ndim; ++k)
      if (c->in[i]->shape[k] > longest) reason = "LAPACK counts in 32-bit integers: a side is above 16384";
  if (reason) {
    DVT_PUT(answer, dvt_answer, reason, reason);
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}

// ---- factorizations --------------------------------------------------------------------------------------------

// The lower triangle of a row-major matrix is the upper one of its transpose, whose conjugate it is.
template <class T>
dvt_status cholesky(dvt_device*, const dvt_call* c) {
  const Matrices<const T> x(c->in[0]);
  const Matrices<T> out(c->out[0]);
  const bool upper = dvt::Attrs(c).boolean(0);
  const int64_t n = x.rows;
  return each_matrix(x.count, n, [&](int64_t at) {
    T* const a = out[at];
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(x[at] + i * n, i + 1, a + i * n);
      std::fill_n(a + i * n + i + 1, n - i - 1, T(0));
    }
    bool sound = !n || Lapack<T>::get()->cholesky(Int(n), a) == 0;
    for (int64_t i = 0; i < n; ++i) sound = sound && std::real(a[i * n + i]) > 0;
    if (!sound) std::fill_n(a, n * n, T(nan));
    if (upper) make_adjoint(a, n);
    return true;
  });
}

// Small matrices are done before LAPACK has looked at its arguments.
constexpr int64_t small = 8;

// What pivots are compared by.
template <class T>
auto magnitude(const T& x) {
  if constexpr (std::is_floating_point_v<T>) return std::abs(x);
  else return std::abs(x.real()) + std::abs(x.imag());
}

// a, row-major, becomes its factors, and pivots[i] the row with which row i changed places.
template <class T>
void factor_small(T* a, int64_t n, Int* pivots) {
  for (int64_t j = 0; j < n; ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < n; ++i)
      if (magnitude(a[i * n + j]) > magnitude(a[best * n + j])) best = i;
    pivots[j] = Int(best);
    if (best != j) std::swap_ranges(a + j * n, a + j * n + n, a + best * n);
    if (a[j * n + j] == T(0)) continue;
    for (int64_t i = j + 1; i < n; ++i) {
      const T factor = a[i * n + j] /= a[j * n + j];
      for (int64_t k = j + 1; k < n; ++k) a[i * n + k] -= factor * a[j * n + k];
    }
  }
}

// The same, of any size. A singular matrix has zeros on the diagonal of U. False if memory is out.
template <class T>
bool factor(const T* x, int64_t n, T* out, Int* pivots) {
  if (n <= small) {
    std::copy_n(x, n * n, out);
    factor_small(out, n, pivots);
    return true;
  }
  auto* const a = static_cast<T*>(scratch(Scratch::kernel, size_t(n * n) * sizeof(T)));
  if (!a) return false;
  transpose(x, n, n, a);
  Lapack<T>::get()->lu(Int(n), a, pivots);
  transpose(a, n, n, out);
  for (int64_t i = 0; i < n; ++i) --pivots[i];
  return true;
}

template <class T>
dvt_status lu_factor(dvt_device*, const dvt_call* c) {
  const Matrices<const T> x(c->in[0]);
  const Matrices<T> out(c->out[0]);
  const int64_t n = x.rows;
  auto *const orders = dvt::data<int64_t>(c->out[1]), *const signs = dvt::data<int64_t>(c->out[2]);
  return each_matrix(x.count, n, [&](int64_t at) {
    auto* const pivots = static_cast<Int*>(scratch(Scratch::kernel_2, size_t(n) * sizeof(Int)));
    if (!pivots || !factor(x[at], n, out[at], pivots)) return false;
    int64_t* const order = orders + at * n;
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    signs[at] = 1;
    for (int64_t i = 0; i < n; ++i)
      if (pivots[i] != i) std::swap(order[i], order[pivots[i]]), signs[at] = -signs[at];
    return true;
  });
}

template <class T>
dvt_status qr(dvt_device*, const dvt_call* c) {
  const Matrices<const T> x(c->in[0]);
  const Matrices<T> q(c->out[0]), r(c->out[1]);
  const int64_t m = x.rows, n = x.columns;
  return each_matrix(x.count, std::max(m, n), [&](int64_t at) {
    auto* const a = static_cast<T*>(scratch(Scratch::kernel, size_t(m * n) * sizeof(T)));
    auto* const columns = static_cast<T*>(scratch(Scratch::kernel_2, size_t(q.size()) * sizeof(T)));
    if (!a || !columns) return false;
    transpose(x[at], m, n, a);
    if (q.size() && Lapack<T>::get()->qr(Int(m), Int(n), Int(q.columns), a, columns)) return false;
    transpose(columns, q.columns, m, q[at]);
    for (int64_t i = 0; i < r.rows; ++i)
      for (int64_t j = 0; j < n; ++j) r[at][i * n + j] = j < i ? T(0) : a[j * m + i];
    return true;
  });
}

// ---- triangular systems ----------------------------------------------------------------------------------------

// Of each leading index of the result, the offset of an operand's matrix, whose leading axes broadcast.
int64_t offset_of(const DLTensor* operand, const DLTensor* out, int64_t at) {
  int64_t offset = 0, step = operand->shape[operand->ndim - 2] * operand->shape[operand->ndim - 1];
  for (int32_t i = out->ndim - 3, k = operand->ndim - 3; k >= 0; --i, --k) {
    if (operand->shape[k] != 1) offset += at % out->shape[i] * step;
    at /= out->shape[i], step *= operand->shape[k];
  }
  return offset;
}

template <class T>
void substitute_small(const T* a, int64_t n, bool upper, bool unit, T* x, int64_t columns, int64_t x_row) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k)
      for (int64_t j = 0; j < columns; ++j) x[i * x_row + j] -= a[i * n + k] * x[k * x_row + j];
    if (!unit)
      for (int64_t j = 0; j < columns; ++j) x[i * x_row + j] /= a[i * n + i];
  }
}

template <class T>
dvt_status solve_triangular(dvt_device*, const dvt_call* c) {
  const DLTensor *const a = c->in[0], *const b = c->in[1];
  const Matrices<T> out(c->out[0]);
  const dvt::Attrs attrs(c);
  const bool upper = attrs.boolean(0), unit = attrs.boolean(1);
  const int64_t n = out.rows;
  // Columns are solved for one by one, so that few large systems are parts, too.
  const int64_t width = std::clamp<int64_t>(out.columns, 1, 128), parts = (out.columns + width - 1) / width;
  return each_matrix(out.count * parts, std::max<int64_t>(n, 1), [&](int64_t at) {
    const int64_t from = at % parts * width, columns = std::min(width, out.columns - from);
    at /= parts;
    const T* const right = dvt::data<const T>(b) + offset_of(b, c->out[0], at) + from;
    T* const x = out[at] + from;
    for (int64_t i = 0; i < n; ++i) std::copy_n(right + i * out.columns, columns, x + i * out.columns);
    const T* const triangle = dvt::data<const T>(a) + offset_of(a, c->out[0], at);
    if (n <= small) substitute_small(triangle, n, upper, unit, x, columns, out.columns);
    else Lapack<T>::get()->solve(upper, unit, Int(n), Int(columns), triangle, x, Int(out.columns));
    return true;
  });
}

// ---- eigenvalues and singular values ---------------------------------------------------------------------------

// Of the conjugate of x, which LAPACK sees, the values are those of x and the vectors are the conjugates.
template <class T>
dvt_status eigh(dvt_device*, const dvt_call* c) {
  using Real = typename Lapack<T>::Real;
  const Matrices<const T> x(c->in[0]);
  const Matrices<T> out(c->out[1]);
  auto* const all = dvt::data<Real>(c->out[0]);
  const int64_t n = x.rows;
  return each_matrix(x.count, n, [&](int64_t at) {
    auto* const a = static_cast<T*>(scratch(Scratch::kernel, size_t(n * n) * sizeof(T)));
    if (!a) return false;
    Real* const values = all + at * n;
    bool sound = true;
    for (int64_t i = 0; i < n; ++i) {
      sound = sound && all_finite(x[at] + i * n, i + 1);
      std::copy_n(x[at] + i * n, i + 1, a + i * n);
    }
    const auto info = sound && n ? Lapack<T>::get()->eigen(Int(n), a, values) : 0;
    if (info == Lapack<T>::out_of_memory) return false;
    if (!sound || info) std::fill_n(a, n * n, T(nan)), std::fill_n(values, n, Real(nan));
    for (int64_t j = 0; j < n; ++j) {
      const T sign = sign_of_largest(a + j * n, n, 1);
      for (int64_t i = 0; i < n; ++i) a[j * n + i] = conjugate(a[j * n + i] * sign);
    }
    transpose(a, n, n, out[at]);
    return true;
  });
}

// x (m, n) is, in columns, its transpose, of which the singular vectors are x's conjugate: u and vh change places,
// and lie in memory as they shall.
template <class T>
dvt_status svd(dvt_device*, const dvt_call* c) {
  using Real = typename Lapack<T>::Real;
  const Matrices<const T> x(c->in[0]);
  const Matrices<T> us(c->out[0]), vhs(c->out[2]);
  auto* const all = dvt::data<Real>(c->out[1]);
  const int64_t m = x.rows, n = x.columns, k = std::min(m, n);
  const bool full = dvt::Attrs(c).boolean(0);
  return each_matrix(x.count, std::max(m, n), [&](int64_t at) {
    auto* const a = static_cast<T*>(scratch(Scratch::kernel, size_t(m * n) * sizeof(T)));
    if (!a) return false;
    T *const u = us[at], *const vh = vhs[at];
    Real* const s = all + at * k;
    std::copy_n(x[at], m * n, a);
    if (!k) {  // what is left is the identity
      std::fill_n(u, us.size(), T(0)), std::fill_n(vh, vhs.size(), T(0));
      for (int64_t i = 0; i < us.columns; ++i) u[i * us.columns + i] = 1;
      for (int64_t i = 0; i < vhs.rows; ++i) vh[i * n + i] = 1;
      return true;
    }
    const bool sound = all_finite(a, m * n);
    const auto info = sound ? Lapack<T>::get()->svd(Int(n), Int(m), full, a, vh, s, u) : 0;
    if (info == Lapack<T>::out_of_memory) return false;
    if (!sound || info) {
      std::fill_n(u, us.size(), T(nan)), std::fill_n(vh, vhs.size(), T(nan)), std::fill_n(s, k, Real(nan));
      return true;
    }
    for (int64_t j = 0; j < k; ++j) {
      const T sign = sign_of_largest(u + j, m, us.columns);
      for (int64_t i = 0; i < m; ++i) u[i * us.columns + j] *= sign;
      for (int64_t i = 0; i < n; ++i) vh[j * n + i] *= conjugate(sign);
    }
    return true;
  });
}

// ---- rows ------------------------------------------------------------------------------------------------------

template <class T>
void add(Table& table, DLDataType type, DLDataType real) {
  const auto add = [&](dvt::Row row) { table.add(row.deterministic().query(query<T>).kernel()); };
  add(dvt::Row("dvt.cholesky", cholesky<T>).in(type).out(type));
  add(dvt::Row("dvt.lu_factor", lu_factor<T>).in(type).out(type).out(dvt::i64).out(dvt::i64));
  add(dvt::Row("dvt.qr", qr<T>).in(type).out(type).out(type));
  add(dvt::Row("dvt.solve_triangular", solve_triangular<T>).in(type).in(type).out(type));
  add(dvt::Row("dvt.eigh", eigh<T>).in(type).out(real).out(type));
  add(dvt::Row("dvt.svd", svd<T>).in(type).out(type).out(real).out(type));
}
}  // namespace

void add_linalg_rows(Table& table) {
  add<float>(table, dvt::f32, dvt::f32);
  add<double>(table, dvt::f64, dvt::f64);
  add<std::complex<float>>(table, dvt::c64, dvt::f32);
  add<std::complex<double>>(table, dvt::c128, dvt::f64);
}
}  // namespace dovetail::cpu
