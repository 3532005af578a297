#include "linalg/lapack.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "blas.hpp"
#include "scratch.hpp"
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
#include "library.hpp"
#endif

namespace dovetail::cpu {
namespace {
template <class T>
constexpr bool is_complex = !std::is_same_v<T, typename Lapack<T>::Real>;

// Parts of one block of scratch, in the order of their sizes in elements; all are nullptr if memory is out.
template <class... Ts>
class Work {
 public:
  explicit Work(const size_t (&sizes)[sizeof...(Ts)]) {
    size_t bytes = 0, i = 0;
    ((places_[i] = bytes, bytes += (sizes[i] * sizeof(Ts) + 63) / 64 * 64, ++i), ...);
    memory_ = static_cast<char*>(scratch(Scratch::lapack, bytes));
  }
  explicit operator bool() const { return memory_; }
  template <class T, size_t i>
  T* part() const {
    return reinterpret_cast<T*>(memory_ + places_[i]);
  }

 private:
  size_t places_[sizeof...(Ts)];
  char* memory_;
};

// What a routine answers to the question for the size of its scratch, which float32 may have rounded down.
template <class T>
size_t wanted(const T& answer) {
  const size_t size = size_t(std::real(answer));
  return size + size / 1'000'000 + 1;
}
}  // namespace

template <class T>
Lapack<T> Lapack<T>::open() {
  Lapack t{};
#if defined(DOVETAIL_CPU_OPENBLAS_VERSION)
  if (!has_blas()) return {};
  const Library library("libdovetail_openblas.so.0");
  const std::string letter = std::is_same_v<T, float>    ? "s"
                             : std::is_same_v<T, double> ? "d"
                             : sizeof(T) == 8            ? "c"
                                                         : "z";
  const auto find = [&](const char* name, auto& function) {
    return library.find(("scipy_" + letter + name + "_").c_str(), function);
  };
  const bool complete = find("potrf", t.potrf_) && find("getrf", t.getrf_) && find("geqrf", t.geqrf_) &&
                        find(is_complex<T> ? "ungqr" : "orgqr", t.orgqr_) &&
                        find(is_complex<T> ? "heevd" : "syevd", t.syevd_) && find("gesdd", t.gesdd_) &&
                        library.find(("scipy_cblas_" + letter + "trsm").c_str(), t.trsm_);
  if (!complete) return {};
#endif
  return t;
}

template <class T>
const Lapack<T>* Lapack<T>::get() {
  static const Lapack table = open();
  return table.potrf_ ? &table : nullptr;
}

template <class T>
auto Lapack<T>::cholesky(Int n, T* a) const -> Info {
  Info info = 0;
  potrf_("U", &n, a, &n, &info, 1);
  return info;
}

template <class T>
auto Lapack<T>::lu(Int n, T* a, Int* pivots) const -> Info {
  Info info = 0;
  getrf_(&n, &n, a, &n, pivots, &info);
  return info;
}

template <class T>
auto Lapack<T>::qr(Int m, Int n, Int columns, T* a, T* q) const -> Info {
  const Int k = std::min(m, n), rows = std::max(m, Int{1}), question = -1;
  Info info = 0;
  T sizes[2];
  geqrf_(&m, &n, a, &rows, nullptr, &sizes[0], &question, &info);
  orgqr_(&m, &columns, &k, q, &rows, nullptr, &sizes[1], &question, &info);
  const Int size = Int(std::max(wanted(sizes[0]), wanted(sizes[1])));
  const Work<T, T> work({size_t(k), size_t(size)});
  if (!work) return out_of_memory;
  T *const taus = work.template part<T, 0>(), *const rest = work.template part<T, 1>();
  geqrf_(&m, &n, a, &rows, taus, rest, &size, &info);
  std::copy_n(a, int64_t{m} * k, q);  // the reflectors, below the diagonal
  orgqr_(&m, &columns, &k, q, &rows, taus, rest, &size, &info);
  return info;
}

template <class T>
auto Lapack<T>::eigen(Int n, T* a, Real* values) const -> Info {
  Info info = 0;
  Int question = -1, integers_size = 0;
  T size;
  if constexpr (is_complex<T>) {
    const auto heevd =
        reinterpret_cast<void (*)(Name, Name, Number n, T*, Number, Real*, T* work, Number, Real* more, Number,
                                  Int* integers, Number, Info*, size_t, size_t)>(syevd_);
    Real more_size;
    heevd("V", "U", &n, a, &n, values, &size, &question, &more_size, &question, &integers_size, &question, &info, 1,
          1);
    const Work<T, Real, Int> work({wanted(size), wanted(more_size), size_t(integers_size)});
    if (!work) return out_of_memory;
    const Int work_size = Int(wanted(size)), more = Int(wanted(more_size));
    heevd("V", "U", &n, a, &n, values, work.template part<T, 0>(), &work_size, work.template part<Real, 1>(), &more,
          work.template part<Int, 2>(), &integers_size, &info, 1, 1);
  } else {
    const auto syevd = reinterpret_cast<void (*)(Name, Name, Number n, T*, Number, T*, T* work, Number,
                                                 Int* integers, Number, Info*, size_t, size_t)>(syevd_);
    syevd("V", "U", &n, a, &n, values, &size, &question, &integers_size, &question, &info, 1, 1);
    const Work<T, Int> work({wanted(size), size_t(integers_size)});
    if (!work) return out_of_memory;
    const Int work_size = Int(wanted(size));
    syevd("V", "U", &n, a, &n, values, work.template part<T, 0>(), &work_size, work.template part<Int, 1>(),
          &integers_size, &info, 1, 1);
  }
  return info;
}

template <class T>
auto Lapack<T>::svd(Int m, Int n, bool full, T* a, T* u, Real* s, T* vh) const -> Info {
  const Int k = std::min(m, n), question = -1, vh_rows = full ? n : k;
  const size_t least = size_t(k), most = size_t(std::max(m, n));
  const Name which = full ? "A" : "S";
  Info info = 0;
  T size;
  if constexpr (is_complex<T>) {
    const auto gesdd =
        reinterpret_cast<void (*)(Name, Number m, Number n, T*, Number, Real*, T*, Number, T*, Number, T* work,
                                  Number, Real* more, Int* integers, Info*, size_t)>(gesdd_);
    gesdd(which, &m, &n, a, &m, s, u, &m, vh, &vh_rows, &size, &question, nullptr, nullptr, &info, 1);
    const size_t more = std::max(5 * least * least + 5 * least, 2 * most * least + 2 * least * least + least);
    const Work<T, Real, Int> work({wanted(size), more, 8 * least});
    if (!work) return out_of_memory;
    const Int work_size = Int(wanted(size));
    gesdd(which, &m, &n, a, &m, s, u, &m, vh, &vh_rows, work.template part<T, 0>(), &work_size,
          work.template part<Real, 1>(), work.template part<Int, 2>(), &info, 1);
  } else {
    const auto gesdd = reinterpret_cast<void (*)(Name, Number m, Number n, T*, Number, T*, T*, Number, T*, Number,
                                                 T* work, Number, Int* integers, Info*, size_t)>(gesdd_);
    gesdd(which, &m, &n, a, &m, s, u, &m, vh, &vh_rows, &size, &question, nullptr, &info, 1);
    const Work<T, Int> work({wanted(size), 8 * least});
    if (!work) return out_of_memory;
    const Int work_size = Int(wanted(size));
    gesdd(which, &m, &n, a, &m, s, u, &m, vh, &vh_rows, work.template part<T, 0>(), &work_size,
          work.template part<Int, 1>(), &info, 1);
  }
  return info;
}

template <class T>
void Lapack<T>::solve(bool upper, bool unit, Int n, Int columns, const T* a, T* b, Int b_row) const {
  constexpr int row_major = 101, left = 141, as_it_is = 111;
  const T one = 1;
  const auto call = [&](auto alpha) {
    using Function = void (*)(int, int, int, int, int, Int, Int, decltype(alpha), const T*, Int, T*, Int);
    reinterpret_cast<Function>(trsm_)(row_major, left, upper ? 121 : 122, as_it_is, unit ? 132 : 131, n, columns,
                                      alpha, a, n, b, b_row);
  };
  if constexpr (is_complex<T>) call(static_cast<const void*>(&one));
  else call(one);
}

template class Lapack<float>;
template class Lapack<double>;
template class Lapack<std::complex<float>>;
template class Lapack<std::complex<double>>;
}  // namespace dovetail::cpu
