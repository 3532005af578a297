// What the ops of matrices share: a batch, copies between row-major arrays and LAPACK's columns, signs of vectors.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <limits>

#include "dovetail/backend.hpp"
#include "linalg/lapack.hpp"
#include "scratch.hpp"

namespace dovetail::cpu {
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
T conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>) return x;
  else return std::conj(x);
}

// The matrices of the last two axes of an operand.
template <class T>
struct Matrices {
  explicit Matrices(const DLTensor* t)
      : data(dvt::data<T>(t)), rows(t->shape[t->ndim - 2]), columns(t->shape[t->ndim - 1]) {
    count = 1;
    for (int32_t i = 0; i < t->ndim - 2; ++i) count *= t->shape[i];
  }
  T* operator[](int64_t i) const { return data + i * rows * columns; }
  int64_t size() const { return rows * columns; }

  T* data;
  int64_t rows, columns, count;
};

// f(i) of each matrix, on several threads where n³ operations each are worth it. f returns false if memory is out.
template <class F>
dvt_status each_matrix(int64_t count, int64_t n, F f) {
  std::atomic<bool> complete{true};
  const double operations = double(n) * double(n) * double(n) + 1000;
  dvt::parallel_for(uint64_t(count), uint64_t(2e5 / operations) + 1, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i)
      if (!f(int64_t(i))) complete.store(false, std::memory_order_relaxed);
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

// y (columns, rows) = x (rows, columns) transposed, in tiles that stay in the cache.
template <class T>
void transpose(const T* x, int64_t rows, int64_t columns, T* y) {
  constexpr int64_t tile = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += tile)
    for (int64_t j0 = 0; j0 < columns; j0 += tile)
      for (int64_t j = j0; j < std::min(columns, j0 + tile); ++j)
        for (int64_t i = i0; i < std::min(rows, i0 + tile); ++i) y[j * rows + i] = x[i * columns + j];
}

// a (n, n) becomes its conjugate transpose.
template <class T>
void make_adjoint(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = conjugate(a[i * n + i]);
    for (int64_t j = 0; j < i; ++j) {
      const T kept = conjugate(a[i * n + j]);
      a[i * n + j] = conjugate(a[j * n + i]), a[j * n + i] = kept;
    }
  }
}

template <class T>
bool all_finite(const T* x, int64_t n) {
  using Real = decltype(std::real(T()));
  const auto* parts = reinterpret_cast<const Real*>(x);
  Real sum = 0;  // of zeros, and NaN where one is not finite
  for (int64_t i = 0, end = n * int64_t(sizeof(T) / sizeof(Real)); i < end; ++i) sum += parts[i] * 0;
  return sum == 0;
}

// The factor of magnitude 1 that makes the element of largest magnitude, of n that are `step` apart, positive.
template <class T>
T sign_of_largest(const T* x, int64_t n, int64_t step) {
  T largest = 0;
  auto most = std::abs(largest);
  for (int64_t i = 0; i < n; ++i)
    if (const auto size = std::abs(x[i * step]); size > most) largest = x[i * step], most = size;
  return most > 0 ? conjugate(largest) / most : T(1);
}
}  // namespace dovetail::cpu
