#include "blas.hpp"

#include <algorithm>
#include <limits>

#include "library.hpp"

namespace dovetail::cpu {
namespace {
using Int = int32_t;  // scipy-openblas32
template <class T>
using Gemm = void (*)(int order, int a, int b, Int m, Int n, Int k, T alpha, const T*, Int, const T*, Int, T beta,
                      T*, Int);
using ComplexGemm = void (*)(int order, int a, int b, Int m, Int n, Int k, const void* alpha, const void*, Int,
                             const void*, Int, const void* beta, void*, Int);
constexpr int row_major = 101, no_trans = 111, trans = 112;

struct Blas {
  Gemm<float> sgemm;
  Gemm<double> dgemm;
  ComplexGemm cgemm, zgemm;
};

const Blas* blas() {
  static const Blas table = [] {
    Blas t{};
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
    const Library library("libdovetail_openblas.so.0");
    const bool complete = library.find("scipy_cblas_sgemm", t.sgemm) &&
                          library.find("scipy_cblas_dgemm", t.dgemm) &&
                          library.find("scipy_cblas_cgemm", t.cgemm) && library.find("scipy_cblas_zgemm", t.zgemm);
    if (!complete) t = {};
#endif
    return t;
  }();
  return table.sgemm ? &table : nullptr;
}

bool fits(const BlasProduct& p) {
  return std::max({p.m, p.n, p.k, p.a_row, p.b_row, p.c_row}) <= std::numeric_limits<Int>::max();
}

template <class T>
bool multiply(const BlasProduct& p, Gemm<T> Blas::* gemm, const T* a, const T* b, T* c) {
  const Blas* t = fits(p) ? blas() : nullptr;
  if (!t) return false;
  (t->*gemm)(row_major, p.a_transposed ? trans : no_trans, p.b_transposed ? trans : no_trans, Int(p.m), Int(p.n),
             Int(p.k), T(1), a, Int(p.a_row), b, Int(p.b_row), T(0), c, Int(p.c_row));
  return true;
}

template <class T>
bool multiply_complex(const BlasProduct& p, ComplexGemm Blas::* gemm, const T* a, const T* b, T* c) {
  const Blas* t = fits(p) ? blas() : nullptr;
  if (!t) return false;
  const T one[2] = {1, 0}, zero[2] = {0, 0};
  (t->*gemm)(row_major, p.a_transposed ? trans : no_trans, p.b_transposed ? trans : no_trans, Int(p.m), Int(p.n),
             Int(p.k), one, a, Int(p.a_row), b, Int(p.b_row), zero, c, Int(p.c_row));
  return true;
}
}  // namespace

bool blas_multiply(const BlasProduct& p, const float* a, const float* b, float* c) {
  return multiply(p, &Blas::sgemm, a, b, c);
}
bool blas_multiply(const BlasProduct& p, const double* a, const double* b, double* c) {
  return multiply(p, &Blas::dgemm, a, b, c);
}
bool blas_multiply_complex(const BlasProduct& p, const float* a, const float* b, float* c) {
  return multiply_complex(p, &Blas::cgemm, a, b, c);
}
bool blas_multiply_complex(const BlasProduct& p, const double* a, const double* b, double* c) {
  return multiply_complex(p, &Blas::zgemm, a, b, c);
}
}  // namespace dovetail::cpu
