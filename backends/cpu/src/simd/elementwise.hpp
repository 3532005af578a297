// Elementwise kernels: one dense inner loop per op and type, and one driver that converts every operand to
// that form.
#pragma once
#include "kernel.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
constexpr int max_elementwise_in = 3;

// out[i] = op(in[0][i * step[0]], ...) for i in [0, n). step is 1 (dense) or 0 (one value for all), never 0 for all
// operands at once; loops of a spec without `scalars` only see 1. out may be exactly one of the inputs.
using Loop = void (*)(const void* const* in, const int64_t* step, void* out, int64_t n);

// fp16 and bf16 in memory are float in the loop.
enum class Half : uint8_t { no, f16, bf16 };

struct Elementwise {
  Loop loop;
  uint8_t n_in;
  uint8_t in_bytes[max_elementwise_in];  // in memory
  uint8_t out_bytes;
  bool scalars = false;
  Half in_half = Half::no;  // of every input of 2 bytes
  Half out_half = Half::no;
  uint32_t grain = 32768;  // elements worth a thread
};

// Runs the op over all elements, on the pool if that pays.
dvt_status run_elementwise(const Elementwise& spec, const dvt_call* c);

// dvt_kernel.run for a spec.
template <const Elementwise& spec>
dvt_status run(dvt_device*, const dvt_call* c) {
  return run_elementwise(spec, c);
}

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

template <class Op, class R, class T>
inline constexpr Elementwise unary{unary_loop<Op, R, T>, 1, {sizeof(T)}, sizeof(R)};
template <class Op, class R, class T>
inline constexpr Elementwise binary{binary_loop<Op, R, T>, 2, {sizeof(T), sizeof(T)}, sizeof(R), true};
// The float loop on fp16 or bf16; a result of R = float is narrowed, any other (bool) stored unchanged.
template <class Op, class R, Half half>
inline constexpr Elementwise unary_half{unary_loop<Op, R, float>,        1,     {2},
                                        sizeof(R) == 4 ? 2 : sizeof(R),  false, half,
                                        sizeof(R) == 4 ? half : Half::no};
template <class Op, class R, Half half>
inline constexpr Elementwise binary_half{binary_loop<Op, R, float>,       2,    {2, 2},
                                         sizeof(R) == 4 ? 2 : sizeof(R),  true, half,
                                         sizeof(R) == 4 ? half : Half::no};

// ---- rows -------------------------------------------------------------------------------------------------------

// A row whose n_in inputs are all `in`. Inputs of the output's type may be its memory.
inline void add_elementwise(Table& table, const char* op, dvt::Row::Run run, int n_in, DLDataType in,
                            DLDataType out, float ulp = 0) {
  dvt::Row row(op, run);
  const unsigned alias = dvt::same(in, out) ? DVT_O_ALIAS : 0;
  for (int i = 0; i < n_in; ++i) row.in(in, DVT_O_STRIDED | DVT_O_HOST_SCALAR | alias);
  table.add(row.out(out).deterministic().ulp(ulp).kernel());
}

// Rows of one functor for lists of types; R<T> is the result's type in C++.
template <class Op, class... T>
void add_unary(Table& table, const char* op) {
  (add_elementwise(table, op, run<unary<Op, T, T>>, 1, dvt::dtype_of<T>(), dvt::dtype_of<T>()), ...);
}
template <class Op, class... T>
void add_binary(Table& table, const char* op) {
  (add_elementwise(table, op, run<binary<Op, T, T>>, 2, dvt::dtype_of<T>(), dvt::dtype_of<T>()), ...);
}
template <class Op>
void add_unary_half(Table& table, const char* op) {
  add_elementwise(table, op, run<unary_half<Op, float, Half::f16>>, 1, dvt::f16, dvt::f16);
  add_elementwise(table, op, run<unary_half<Op, float, Half::bf16>>, 1, dvt::bf16, dvt::bf16);
}
template <class Op>
void add_binary_half(Table& table, const char* op) {
  add_elementwise(table, op, run<binary_half<Op, float, Half::f16>>, 2, dvt::f16, dvt::f16);
  add_elementwise(table, op, run<binary_half<Op, float, Half::bf16>>, 2, dvt::bf16, dvt::bf16);
}
// Ops that ignore the sign: one loop per size serves both rows.
template <class Op>
void add_binary_bits(Table& table, const char* op) {
  const auto both = [&](dvt::Row::Run run, unsigned bits) {
    for (unsigned code : {DVT_INT, DVT_UINT}) {
      const DLDataType t{uint8_t(code), uint8_t(bits), 1};
      add_elementwise(table, op, run, 2, t, t);
    }
  };
  both(run<binary<Op, uint8_t, uint8_t>>, 8);
  both(run<binary<Op, uint16_t, uint16_t>>, 16);
  both(run<binary<Op, uint32_t, uint32_t>>, 32);
  both(run<binary<Op, uint64_t, uint64_t>>, 64);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
