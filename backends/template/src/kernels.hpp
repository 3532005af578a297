// Helpers for kernels. A kernel is a function of a call that runs on the device: `data` of every operand is an
// address that the device's worker threads can access. It returns nothing and reports errors in the data with
// bad_index().
#pragma once
#include <cstdint>
#include <functional>

#include "dovetail/backend.hpp"

using Kernel = void (*)(const dvt_call*);
using Work = std::function<void(const dvt_call*)>;

// Enqueues a kernel, or other work, with a copy of the call on the call's stream. In device.cpp.
dvt_status launch(dvt_device*, const dvt_call*, Work);
template <Kernel kernel>
dvt_status run(dvt_device* device, const dvt_call* call) {
  return launch(device, call, kernel);
}

// Reports an index out of range: an IndexError at the next wait. The kernel skips that index and goes on.
void bad_index(int64_t index, int64_t axis, int64_t size);

// Each file of kernels/ adds its rows to the table.
void add_elementwise(dvt::KernelTable&);
void add_copies(dvt::KernelTable&);
void add_indexing(dvt::KernelTable&);
void add_reductions(dvt::KernelTable&);
void add_matmul(dvt::KernelTable&);

// ---- types: f(T{}) for each of a list ---------------------------------------------------------------------------

template <class... T>
struct Types {};
using Signed = Types<int8_t, int16_t, int32_t, int64_t>;
using Unsigned = Types<uint8_t, uint16_t, uint32_t, uint64_t>;
using Floats = Types<float, double>;
struct Pair {  // 16 bytes
  uint64_t half[2];
};
using Sizes = Types<uint8_t, uint16_t, uint32_t, uint64_t, Pair>;  // for kernels that only copy elements

template <class... T, class... More, class F>
void for_each_type(Types<T...>, F f) {
  (f(T{}), ...);
}
template <class... T, class... U>
Types<T..., U...> operator+(Types<T...>, Types<U...>) {
  return {};
}
template <class T>
DLDataType any_of_size() {
  return dvt::any(8 * sizeof(T));
}

// ---- iterating over tensors -------------------------------------------------------------------------------------

// Iterates over N tensors at once, in row-major order of `shape`: at[k] is the offset in the k-th, in elements.
template <int N>
struct Iteration {
  int ndim;
  const int64_t* shape;
  const int64_t* strides[N];
  int64_t at[N] = {}, index[DVT_MAX_NDIM] = {};

  void next() {
    for (int axis = ndim - 1; axis >= 0; --axis) {
      for (int k = 0; k < N; ++k) at[k] += strides[k][axis];
      if (++index[axis] < shape[axis]) return;
      for (int k = 0; k < N; ++k) at[k] -= shape[axis] * strides[k][axis];
      index[axis] = 0;
    }
  }
};
