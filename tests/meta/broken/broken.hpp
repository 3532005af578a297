// A device with a deliberate fault, which the conformance suite must find. The good device is
// backends/template with a random_bits of its own; a fault replaces one part of it.
//
// The environment variable DOVETAIL_BROKEN selects the fault by its name; without it the device is right.
// docs/conformance.md describes each fault and the case that finds it.
#pragma once
#include <cstring>
#include <functional>
#include <vector>

#include "kernels.hpp"

// The device's functions and the launch of its kernels: all that a fault can replace.
struct Device {
  dvt_backend backend;
  dvt_streams streams;
  std::vector<dvt_kernel> rows;
  dvt_status (*launch)(dvt_device*, const dvt_call*, Work);

  // The row of the op whose first operands have these types.
  dvt_kernel& row(const char* op, const std::vector<DLDataType>& types);
};
extern Device good;  // without the fault: a broken function uses it for the parts that stay right

struct Fault {
  const char* name;
  std::function<void(Device&)> apply;
};
using Faults = std::vector<Fault>;
Faults elementwise_faults();
Faults other_kernel_faults();
Faults device_faults();

void complete(Device&);  // adds what the faults need and the good device lacks

// The fault of one row: another function runs.
Fault in_row(const char* name, const char* op, const std::vector<DLDataType>& types, dvt::Row::Run);

// Element i of a tensor, in row-major order: simple rather than fast.
template <class T>
T& element(const DLTensor* t, int64_t i) {
  int64_t at = 0;
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    at += i % t->shape[axis] * t->strides[axis];
    i /= t->shape[axis];
  }
  return dvt::data<T>(t)[at];
}
