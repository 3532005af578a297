// dovetail/elementwise.hpp - elementwise calls of any shape and strides as launches that a device with many threads
// can do: rows of columns, few axes, 31 bits of elements. C++17, header-only, like backend.hpp and like it no part
// of the protocol.
//
//   dvt_status run(dvt_device* d, const dvt_call* c) {
//     return dvt::for_each_launch<2>(c, [&](char* const (&data)[3], const dvt::Layout<2>& layout) {
//       return launch(d, layout.is_dense() ? dense : strided, data[0], data[1], data[2], layout);
//     });
//   }
#ifndef DOVETAIL_ELEMENTWISE_HPP
#define DOVETAIL_ELEMENTWISE_HPP

#include <algorithm>

#include "dovetail/backend.hpp"
#include "dovetail/layout.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
// One axis of a call, with the strides of every operand.
template <int operands>
struct ElementwiseAxis {
  int64_t size, stride[operands];

  bool continues(const ElementwiseAxis& inner) const {
    for (int k = 0; k < operands; ++k)
      if (stride[k] != inner.stride[k] * inner.size) return false;
    return true;
  }
  bool operator<(const ElementwiseAxis& other) const { return size < other.size; }
};

// A call, or a part of one: axes that lie on in memory are merged, the last of them is the one along rows.
template <int inputs>
class ElementwisePart {
 public:
  using Axis = ElementwiseAxis<inputs + 1>;

  explicit ElementwisePart(const dvt_call* c) {
    const DLTensor* tensor[inputs + 1];
    for (int k = 0; k <= inputs; ++k) {
      const DLTensor* t = tensor[k] = k < inputs ? c->in[k] : c->out[0];
      bytes_[k] = t->dtype.bits / 8;
      data_[k] = t->ndim ? data<char>(t) : nullptr;
      if (!t->ndim) std::memcpy(&value_[k], data<char>(t), size_t(bytes_[k]));
    }
    for (int i = 0; i < c->out[0]->ndim; ++i) {
      Axis axis{c->out[0]->shape[i], {}};
      for (int k = 0; k <= inputs; ++k) axis.stride[k] = tensor[k]->ndim ? tensor[k]->strides[i] : 0;
      append(axis);
    }
  }

  // Splits at the shortest axis, into the fewest launches, what is too much for one.
  template <class Launch>
  dvt_status for_each_launch(Launch& launch) const {
    int64_t rows = 1;
    for (int i = 0; i < axes_; ++i) rows *= axis_[i].size;
    if (axes_ < max_axes && rows * row_.size <= int64_t{max_elements}) return launch(data_, layout());
    const int split = int(std::min_element(axis_, axis_ + axes_) - axis_);
    const Axis& outer = axes_ ? axis_[split] : row_;
    const int64_t at_once = axes_ ? 1 : max_elements;
    ElementwisePart part = *this;
    if (axes_) part.axes_ = axes_ - 1, std::copy(axis_ + split + 1, axis_ + axes_, part.axis_ + split);
    for (int64_t i = 0; i < outer.size; i += at_once) {
      if (!axes_) part.row_.size = std::min(at_once, outer.size - i);
      for (int k = 0; k <= inputs; ++k)
        if (data_[k]) part.data_[k] = data_[k] + i * outer.stride[k] * bytes_[k];
      if (dvt_status s = part.for_each_launch(launch)) return s;
    }
    return DVT_OK;
  }

 private:
  // Shorter rows leave most of a cache line unused and do not fill a vector.
  static constexpr int64_t shortest_row = 16;

  void append(Axis next) {
    if (next.size == 1) return;
    if (row_.continues(next)) next.size *= row_.size;
    else if (row_.size > 1) axis_[axes_++] = row_;
    row_ = next;
  }

  Layout<inputs> layout() const {
    Axis axis[DVT_MAX_NDIM], row = row_;
    std::copy_n(axis_, axes_, axis);
    Axis* const longest = std::max_element(axis, axis + axes_);
    if (axes_ && row.size < shortest_row && longest->size >= shortest_row) std::swap(*longest, row);
    Layout<inputs> how{};
    how.rows = 1, how.columns = uint32_t(row.size), how.axes = uint32_t(axes_);
    for (int i = 0; i < axes_; ++i) {
      const Axis& outer = axis[axes_ - 1 - i];
      how.rows *= uint32_t(outer.size), how.size[i] = divisor(uint32_t(outer.size));
      std::copy_n(outer.stride, inputs + 1, how.stride[i]);
    }
    how.contiguous = row.size == 1 || row.stride[inputs] == 1;
    for (int k = 0; k < inputs; ++k) {
      how.varies |= uint32_t(row.size > 1 && row.stride[k]) << k;
      how.contiguous &= row.size == 1 || row.stride[k] == 0 || row.stride[k] == 1;
    }
    std::copy_n(row.stride, inputs + 1, how.step);
    std::copy_n(value_, inputs, how.value);
    return how;
  }

  int axes_ = 0;
  Axis axis_[DVT_MAX_NDIM], row_{1, {}};
  char* data_[inputs + 1];  // nullptr: the input's value is in the layout
  int64_t bytes_[inputs + 1];
  Scalar value_[inputs + 1]{};
};

// launch(data, layout) for each part of a call with so many inputs and one output that one launch can do; data is a
// char* const (&)[inputs + 1], the output's last, and NULL for an input without axes, whose value lies in host
// memory and comes in the layout. Stops at the first status that is not DVT_OK, and returns it.
template <int inputs, class Launch>
dvt_status for_each_launch(const dvt_call* c, Launch launch) {
  return ElementwisePart<inputs>(c).for_each_launch(launch);
}
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_ELEMENTWISE_HPP
