#include "blas.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "library.hpp"

namespace dovetail::cpu {
namespace {
using Int = int32_t;  // scipy-openblas32
template <class In, class Out = In>
using Gemm = void (*)(int order, int a, int b, Int m, Int n, Int k, Out alpha, const In*, Int, const In*, Int,
                      Out beta, Out*, Int);
using ComplexGemm = void (*)(int order, int a, int b, Int m, Int n, Int k, const void* alpha, const void*, Int,
                             const void*, Int, const void* beta, void*, Int);
constexpr int row_major = 101, no_trans = 111, trans = 112;

struct Blas {
  Gemm<float> sgemm;
  Gemm<double> dgemm;
  ComplexGemm cgemm, zgemm;
  Gemm<uint16_t, float> sbgemm;  // may be absent
};

// The cores for which sbgemm is made of bfloat16 instructions, as OpenBLAS calls them. For all others it is plain
// C, one number at a time.
[[maybe_unused]] bool multiplies_bfloat16(const char* core) {
  for (const char* known : {"neoversev1", "neoversen2", "neoversev2"})
    if (!std::strcmp(core, known)) return true;
  return false;
}

const Blas* blas() {
  static const Blas table = [] {
    Blas t{};
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
    const Library library("libdovetail_openblas.so.0");
    const bool complete = library.find("scipy_cblas_sgemm", t.sgemm) &&
                          library.find("scipy_cblas_dgemm", t.dgemm) &&
                          library.find("scipy_cblas_cgemm", t.cgemm) && library.find("scipy_cblas_zgemm", t.zgemm);
    if (!complete) return Blas{};
    const char* (*core)() = nullptr;
    if (library.find("scipy_openblas_get_corename", core) && multiplies_bfloat16(core()))
      library.find("scipy_cblas_sbgemm", t.sbgemm);
#endif
    return t;
  }();
  return table.sgemm ? &table : nullptr;
}

bool fits(const BlasProduct& p) {
  return std::max({p.m, p.n, p.k, p.a_row, p.b_row, p.c_row}) <= std::numeric_limits<Int>::max();
}

template <class In, class Out>
bool multiply(const BlasProduct& p, Gemm<In, Out> Blas::* gemm, const In* a, const In* b, Out* c) {
  const Blas* t = fits(p) ? blas() : nullptr;
  if (!t || !(t->*gemm)) return false;
  (t->*gemm)(row_major, p.a_transposed ? trans : no_trans, p.b_transposed ? trans : no_trans, Int(p.m), Int(p.n),
             Int(p.k), Out(1), a, Int(p.a_row), b, Int(p.b_row), Out(p.add), c, Int(p.c_row));
  return true;
}

template <class T>
bool multiply_complex(const BlasProduct& p, ComplexGemm Blas::* gemm, const T* a, const T* b, T* c) {
  const Blas* t = fits(p) ? blas() : nullptr;
  if (!t) return false;
  const T one[2] = {1, 0}, beta[2] = {T(p.add), 0};
  (t->*gemm)(row_major, p.a_transposed ? trans : no_trans, p.b_transposed ? trans : no_trans, Int(p.m), Int(p.n),
             Int(p.k), one, a, Int(p.a_row), b, Int(p.b_row), beta, c, Int(p.c_row));
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
bool blas_multiply_bfloat16(const BlasProduct& p, const uint16_t* a, const uint16_t* b, float* c) {
  return multiply(p, &Blas::sbgemm, a, b, c);
}
}  // namespace dovetail::cpu
