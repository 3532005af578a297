// LAPACK, and the triangular solver, of the OpenBLAS that dovetail-cpu carries. Every call runs on the calling
// thread.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>

namespace dovetail::cpu {
// Of float, double and the complex numbers of them. Matrices are column-major and dense, as in LAPACK: the rows of
// an array are the columns of its transpose.
template <class T>
class Lapack {
 public:
  using Int = int32_t;  // scipy-openblas32
  using Real = decltype(std::real(T()));
  // LAPACK's info: 0, or what the routine found. `out_of_memory` where there was none to work in.
  using Info = Int;
  static constexpr Info out_of_memory = -1000;

  // nullptr where OpenBLAS is missing or multiplies wrongly on this processor.
  static const Lapack* get();

  // a (n, n), of which the upper triangle is read, becomes the upper triangle u with adjoint(u) u = a. The lower
  // triangle stays.
  Info cholesky(Int n, T* a) const;
  // a (n, n) = P L U; pivots[i] is the row, counted from 1, with which row i changed places.
  Info lu(Int n, T* a, Int* pivots) const;
  // a (m, n) becomes R, on and above the diagonal; q (m, columns) the first columns of Q.
  Info qr(Int m, Int n, Int columns, T* a, T* q) const;
  // The eigenvalues, ascending, of a (n, n), of which the upper triangle is read; a's columns become eigenvectors.
  Info eigen(Int n, T* a, Real* values) const;
  // a (m, n) = u diag(s) vh, of k = min(m, n) values: u (m, k) and vh (k, n), or with `full` (m, m) and (n, n). a
  // is lost.
  Info svd(Int m, Int n, bool full, T* a, T* u, Real* s, T* vh) const;
  // b, row-major, `columns` of n rows that are `b_row` apart, becomes x of a x = b, a row-major triangle a (n, n).
  void solve(bool upper, bool unit, Int n, Int columns, const T* a, T* b, Int b_row) const;

 private:
  using Name = const char*;
  using Number = const Int*;
  void (*potrf_)(Name, Number n, T*, Number, Info*, size_t);
  void (*getrf_)(Number m, Number n, T*, Number, Int* pivots, Info*);
  void (*geqrf_)(Number m, Number n, T*, Number, T* taus, T* work, Number, Info*);
  void (*orgqr_)(Number m, Number n, Number k, T*, Number, const T* taus, T* work, Number, Info*);
  void (*syevd_)();  // the arguments of these are others for complex numbers
  void (*gesdd_)();
  void (*trsm_)();

  static Lapack open();
};
}  // namespace dovetail::cpu
