#include "blas.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "dovetail/backend.hpp"
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
#include "library.hpp"
#endif

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

// The cores for which sbgemm uses bfloat16 instructions, by OpenBLAS's names. On all others it is plain
// scalar C.
[[maybe_unused]] bool multiplies_bfloat16(const char* core) {
  for (const char* known : {"neoversev1", "neoversen2", "neoversev2"})
    if (!std::strcmp(core, known)) return true;
  return false;
}

template <class In, class Out>
void call(Gemm<In, Out> gemm, const BlasProduct& p, const In* a, const In* b, Out* c) {
  gemm(row_major, p.a_transposed ? trans : no_trans, p.b_transposed ? trans : no_trans, Int(p.m), Int(p.n),
       Int(p.k), Out(1), a, Int(p.a_row), b, Int(p.b_row), Out(0), c, Int(p.c_row));
}
template <class T>
void call(ComplexGemm gemm, const BlasProduct& p, const T* a, const T* b, T* c) {
  const T one[2] = {1, 0}, beta[2] = {};
  gemm(row_major, p.a_transposed ? trans : no_trans, p.b_transposed ? trans : no_trans, Int(p.m), Int(p.n),
       Int(p.k), one, a, Int(p.a_row), b, Int(p.b_row), beta, c, Int(p.c_row));
}

// A product of small integers, which is exact in any order. `parts`: 2 for complex numbers, whose imaginary
// parts are 0 in a.
template <class T, int parts, class AnyGemm>
bool is_right(AnyGemm gemm) {
  constexpr int m = 33, n = 35, k = 37;  // larger than the tiles of kernels, and no multiples of them
  const auto entry = [](int i, int j) { return T((3 * i + 5 * j) % 7 - 3); };
  std::vector<T> a(m * k * parts), b(k * n * parts), c(m * n * parts);
  for (int i = 0; i < m * k; ++i) a[size_t(i * parts)] = entry(i / k, i % k);
  for (int i = 0; i < k * n * parts; ++i) b[size_t(i)] = entry(i / (n * parts), i % (n * parts));
  BlasProduct p{};
  p.m = m, p.n = n, p.k = k, p.a_row = k, p.b_row = p.c_row = n;
  call(gemm, p, a.data(), b.data(), c.data());
  for (int i = 0; i < m * n * parts; ++i) {
    T sum = 0;
    for (int j = 0; j < k; ++j) sum += entry(i / (n * parts), j) * entry(j, i % (n * parts));
    if (c[size_t(i)] != sum) return false;
  }
  return true;
}

Blas open_blas() {
  Blas t{};
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
  const Library library("libdovetail_openblas.so.0");
  const char* (*core)() = nullptr;
  const bool complete = library.find("scipy_cblas_sgemm", t.sgemm) && library.find("scipy_cblas_dgemm", t.dgemm) &&
                        library.find("scipy_cblas_cgemm", t.cgemm) && library.find("scipy_cblas_zgemm", t.zgemm) &&
                        library.find("scipy_openblas_get_corename", core);
  if (!complete) return {};
  // In an emulator, OpenBLAS 0.3.34's kernels for processors with SME return wrong sums.
  if (!is_right<float, 1>(t.sgemm) || !is_right<double, 1>(t.dgemm) || !is_right<float, 2>(t.cgemm) ||
      !is_right<double, 2>(t.zgemm)) {
    const std::string message = "OpenBLAS multiplies wrongly on this processor, which it takes for " +
                                std::string(core()) + ": dovetail-cpu's own kernels do it, more slowly";
    dvt::host->log(dvt::host, 2, message.c_str());
    return {};
  }
  if (multiplies_bfloat16(core())) library.find("scipy_cblas_sbgemm", t.sbgemm);
#endif
  return t;
}

const Blas* blas() {
  static const Blas table = open_blas();
  return table.sgemm ? &table : nullptr;
}

bool fits(const BlasProduct& p) {
  return std::max({p.m, p.n, p.k, p.a_row, p.b_row, p.c_row}) <= std::numeric_limits<Int>::max();
}

template <class AnyGemm, class In, class Out>
bool multiply(const BlasProduct& p, AnyGemm Blas::* gemm, const In* a, const In* b, Out* c) {
  const Blas* t = fits(p) ? blas() : nullptr;
  if (!t || !(t->*gemm)) return false;
  call(t->*gemm, p, a, b, c);
  return true;
}
}  // namespace

bool has_blas() { return blas(); }
bool blas_multiply(const BlasProduct& p, const float* a, const float* b, float* c) {
  return multiply(p, &Blas::sgemm, a, b, c);
}
bool blas_multiply(const BlasProduct& p, const double* a, const double* b, double* c) {
  return multiply(p, &Blas::dgemm, a, b, c);
}
bool blas_multiply_complex(const BlasProduct& p, const float* a, const float* b, float* c) {
  return multiply(p, &Blas::cgemm, a, b, c);
}
bool blas_multiply_complex(const BlasProduct& p, const double* a, const double* b, double* c) {
  return multiply(p, &Blas::zgemm, a, b, c);
}
bool blas_multiply_bfloat16(const BlasProduct& p, const uint16_t* a, const uint16_t* b, float* c) {
  return multiply(p, &Blas::sbgemm, a, b, c);
}
}  // namespace dovetail::cpu
