// A device that is broken on purpose: what the conformance suite must find. The good one is the device that authors
// of backends start from, backends/template, with a random_bits of its own; a fault replaces one thing of it.
//
// The environment variable DOVETAIL_BROKEN chooses the fault by its name; without it the device is right. What each
// fault is and what finds it stands in docs/conformance.md.
#pragma once
#include <cstring>
#include <functional>
#include <vector>

#include "kernels.hpp"

// What the device hands to the host, and how its kernels get on a queue: all that a fault can change.
struct Device {
  dvt_backend backend;
  dvt_streams streams;
  std::vector<dvt_kernel> rows;
  dvt_status (*launch)(dvt_device*, const dvt_call*, Kernel);

  // The row of the op whose operands begin with these types.
  dvt_kernel& row(const char* op, const std::vector<DLDataType>& types);
};
extern Device good;  // without the fault: a broken function does with it what it still does right

struct Fault {
  const char* name;
  std::function<void(Device&)> apply;
};
using Faults = std::vector<Fault>;
Faults elementwise_faults();
Faults other_kernel_faults();
Faults device_faults();

void complete(Device&);  // the good one gets what the faults need and it lacks

// The fault of one row: it runs something else.
Fault in_row(const char* name, const char* op, const std::vector<DLDataType>& types, dvt::Row::Run);

// Element i of a tensor, counted row by row: for kernels that are short rather than fast.
template <class T>
T& element(const DLTensor* t, int64_t i) {
  int64_t at = 0;
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    at += i % t->shape[axis] * t->strides[axis];
    i /= t->shape[axis];
  }
  return dvt::data<T>(t)[at];
}
