// Elementwise kernels: one dense inner loop per op and type, and one driver that converts every operand to
// that form.
#pragma once
#include "kernel.hpp"
#include "loops.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// Runs the op over all elements, on the pool if that pays.
dvt_status run_elementwise(const Elementwise& spec, const dvt_call* c);

// dvt_kernel.run for a spec, and the spec for the compiler's table.
struct ElementwiseKernel {
  dvt::Row::Run run;
  const Elementwise* spec;
};
template <const Elementwise& spec>
dvt_status run(dvt_device*, const dvt_call* c) {
  return run_elementwise(spec, c);
}
template <const Elementwise& spec>
inline constexpr ElementwiseKernel kernel{run<spec>, &spec};

// ---- loops from a functor: R operator()(T...) const, vectorised by the compiler ---------------------------------

template <class Op, class R, class T>
void unary_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  R* y = static_cast<R*>(out);
  DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = Op()(x[i]);
}

template <class Op, class R, class T>
void binary_loop(const void* const* in, const int64_t* step, void* out, int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  R* y = static_cast<R*>(out);
  if (step[0] && step[1]) {
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = Op()(a[i], b[i]);
  } else if (step[0]) {
    const T value = *b;
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = Op()(a[i], value);
  } else {
    const T value = *a;
    DOVETAIL_CPU_INDEPENDENT for (int64_t i = 0; i < n; ++i) y[i] = Op()(value, b[i]);
  }
}

// The same on fp16 and bf16 in memory, H: converted in registers, a vector at a time. R = float becomes H.
template <Half half>
using HalfOf = std::conditional_t<half == Half::f16, f16, bf16>;
template <class H, class R>
using StoredAs = std::conditional_t<std::is_same_v<R, float>, H, R>;

template <class S, class R>
DOVETAIL_CPU_INLINE S stored(R x) {
  if constexpr (std::is_same_v<R, S>) return x;
  else return narrow<S>(x);
}
// What a step of the loop reads from H and stores as R: a vector, of bf16 that become bf16 two, in an order of its
// own.
template <class H, class R>
struct Block {
  static constexpr bool pairs = std::is_same_v<H, bf16> && std::is_same_v<R, float>;
  static constexpr int vectors = pairs ? 2 : 1;
  static constexpr int64_t size = vectors * floats;
  float x[vectors][floats];

  DOVETAIL_CPU_INLINE explicit Block(const H* from) {
    if constexpr (pairs) {
      const Bf16Pairs<floats> both(from);
      store_floats<floats>(both.even, x[0]), store_floats<floats>(both.odd, x[1]);
    } else {
      store_floats<floats>(load_floats<floats>(from), x[0]);
    }
  }
  // f(k, j): the result of x[k][j].
  template <class F>
  DOVETAIL_CPU_INLINE static void store(F f, StoredAs<H, R>* to) {
    R y[vectors][floats];
    if constexpr (pairs) {
      // Not unrolled: these have selections which only the vectoriser of loops takes.
#pragma GCC unroll 1
      for (int j = 0; j < floats; ++j) y[0][j] = f(0, j);
#pragma GCC unroll 1
      for (int j = 0; j < floats; ++j) y[1][j] = f(1, j);
      Bf16Pairs<floats>::store(load_floats<floats>(y[0]), load_floats<floats>(y[1]), to);
    } else {
      for (int j = 0; j < floats; ++j) y[0][j] = f(0, j);
      if constexpr (std::is_same_v<R, float>) store_floats<floats>(load_floats<floats>(y[0]), to);
      else std::memcpy(to, y, sizeof y);
    }
  }
};
template <class Op, class R, class H>
void unary_stored_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  using B = Block<H, R>;
  const H* x = static_cast<const H*>(in[0]);
  auto* y = static_cast<StoredAs<H, R>*>(out);
  int64_t i = 0;
  for (; i + B::size <= n; i += B::size) {
    const B a(x + i);
    B::store([&](int k, int j) { return Op()(a.x[k][j]); }, y + i);
  }
  for (; i < n; ++i) y[i] = stored<StoredAs<H, R>>(Op()(widen(x[i])));
}
template <class Op, class R, class H>
void binary_stored_loop(const void* const* in, const int64_t* step, void* out, int64_t n) {
  using B = Block<H, R>;
  const H *a = static_cast<const H*>(in[0]), *b = static_cast<const H*>(in[1]);
  auto* y = static_cast<StoredAs<H, R>*>(out);
  int64_t i = 0;
  if (step[0] && step[1]) {
    for (; i + B::size <= n; i += B::size) {
      const B u(a + i), v(b + i);
      B::store([&](int k, int j) { return Op()(u.x[k][j], v.x[k][j]); }, y + i);
    }
  } else if (step[0]) {
    const float v = widen(*b);
    for (; i + B::size <= n; i += B::size) {
      const B u(a + i);
      B::store([&](int k, int j) { return Op()(u.x[k][j], v); }, y + i);
    }
  } else {
    const float u = widen(*a);
    for (; i + B::size <= n; i += B::size) {
      const B v(b + i);
      B::store([&](int k, int j) { return Op()(u, v.x[k][j]); }, y + i);
    }
  }
  for (; i < n; ++i) y[i] = stored<StoredAs<H, R>>(Op()(widen(a[i * step[0]]), widen(b[i * step[1]])));
}

template <class Op, class R, class T>
inline constexpr Elementwise unary{unary_loop<Op, R, T>, 1, {sizeof(T)}, sizeof(R)};
template <class Op, class R, class T>
inline constexpr Elementwise binary{binary_loop<Op, R, T>, 2, {sizeof(T), sizeof(T)}, sizeof(R), true};
// The float loop on fp16 or bf16; a result of R = float is narrowed, any other (bool) stored unchanged.
template <class R, Half half>
inline constexpr uint8_t half_bytes = sizeof(R) == 4 ? 2 : sizeof(R);
template <class R, Half half>
inline constexpr Half half_result = sizeof(R) == 4 ? half : Half::no;
template <class Op, class R, Half half>
inline constexpr Elementwise unary_half{.loop = unary_loop<Op, R, float>,
                                        .n_in = 1,
                                        .in_bytes = {2},
                                        .out_bytes = half_bytes<R, half>,
                                        .in_half = half,
                                        .out_half = half_result<R, half>,
                                        .stored = unary_stored_loop<Op, R, HalfOf<half>>};
template <class Op, class R, Half half>
inline constexpr Elementwise binary_half{.loop = binary_loop<Op, R, float>,
                                         .n_in = 2,
                                         .in_bytes = {2, 2},
                                         .out_bytes = half_bytes<R, half>,
                                         .scalars = true,
                                         .in_half = half,
                                         .out_half = half_result<R, half>,
                                         .stored = binary_stored_loop<Op, R, HalfOf<half>>};

// ---- rows -------------------------------------------------------------------------------------------------------

// A row whose inputs are all `in`. Inputs of the output's type may be its memory.
inline void add_elementwise_row(Table& table, const char* op, dvt::Row::Run run, int n_in, DLDataType in,
                                DLDataType out) {
  dvt::Row row(op, run);
  const unsigned alias = dvt::same(in, out) ? DVT_O_ALIAS : 0;
  for (int i = 0; i < n_in; ++i) row.in(in, DVT_O_STRIDED | DVT_O_HOST_SCALAR | alias);
  table.add(row.out(out).deterministic().kernel());
}
// Such a row, and its loop for the compiler.
inline void add_elementwise(Table& table, const char* op, ElementwiseKernel kernel, DLDataType in, DLDataType out) {
  add_elementwise_row(table, op, kernel.run, kernel.spec->n_in, in, out);
  table.add_loop({op, kernel.spec, nullptr, {in, in, in}, out});
}

// Rows of one functor for lists of types; R<T> is the result's type in C++.
template <class Op, class... T>
void add_unary(Table& table, const char* op) {
  (add_elementwise(table, op, kernel<unary<Op, T, T>>, dvt::dtype_of<T>(), dvt::dtype_of<T>()), ...);
}
template <class Op, class... T>
void add_binary(Table& table, const char* op) {
  (add_elementwise(table, op, kernel<binary<Op, T, T>>, dvt::dtype_of<T>(), dvt::dtype_of<T>()), ...);
}
template <class Op>
void add_unary_half(Table& table, const char* op) {
  add_elementwise(table, op, kernel<unary_half<Op, float, Half::f16>>, dvt::f16, dvt::f16);
  add_elementwise(table, op, kernel<unary_half<Op, float, Half::bf16>>, dvt::bf16, dvt::bf16);
}
template <class Op>
void add_binary_half(Table& table, const char* op) {
  add_elementwise(table, op, kernel<binary_half<Op, float, Half::f16>>, dvt::f16, dvt::f16);
  add_elementwise(table, op, kernel<binary_half<Op, float, Half::bf16>>, dvt::bf16, dvt::bf16);
}
// Ops that ignore the sign: one loop per size serves both rows.
template <class Op>
void add_binary_bits(Table& table, const char* op) {
  const auto both = [&](ElementwiseKernel kernel, unsigned bits) {
    for (unsigned code : {DVT_INT, DVT_UINT}) {
      const DLDataType t{uint8_t(code), uint8_t(bits), 1};
      add_elementwise(table, op, kernel, t, t);
    }
  };
  both(kernel<binary<Op, uint8_t, uint8_t>>, 8);
  both(kernel<binary<Op, uint16_t, uint16_t>>, 16);
  both(kernel<binary<Op, uint32_t, uint32_t>>, 32);
  both(kernel<binary<Op, uint64_t, uint64_t>>, 64);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
