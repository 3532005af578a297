#include "elementwise.hpp"

#include <bit>
#include <cstring>

#include "kernels/common/layout.hpp"
#include "kernels/common/pack.hpp"

namespace gpu {
namespace {
constexpr uint32_t shortest_row = 16;  // with fewer neighbours most of what a warp reads at once is not wanted

Divisor divisor(uint32_t size) {
  const auto shift = uint32_t(std::bit_width(size - 1));
  return {size, uint32_t((uint64_t{1} << (31 + shift)) / size + 1), shift};
}

template <int operands>
struct Axis {
  int64_t size, stride[operands];

  bool continues(const Axis& inner) const {
    for (int k = 0; k < operands; ++k)
      if (stride[k] != inner.stride[k] * inner.size) return false;
    return true;
  }
};

// A part of a call that one launch can do: at most max_axes axes, at most max_elements elements. The last axis is
// the one along rows.
template <int inputs>
struct Block {
  int axes = 0;
  Axis<inputs + 1> axis[DVT_MAX_NDIM], row{1, {}};
  char* data[inputs + 1];  // nullptr: the input's value comes with the call

  void append(Axis<inputs + 1> next) {
    if (next.size == 1) return;
    if (row.continues(next)) next.size *= row.size;
    else if (row.size > 1) axis[axes++] = row;
    row = next;
  }
};

template <int inputs>
class Launch {
 public:
  Launch(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) : d_(d), c_(c), kernels_(kernels) {
    const DLTensor* tensor[inputs + 1];
    for (int k = 0; k <= inputs; ++k) {
      const DLTensor* t = tensor[k] = k < inputs ? c->in[k] : c->out[0];
      const bool on_host = t->ndim == 0;
      whole_.data[k] = on_host ? nullptr : dvt::data<char>(t);
      bytes_[k] = t->dtype.bits / 8;
      if (on_host) std::memcpy(&value_[k], dvt::data<char>(t), bytes_[k]);
    }
    for (int i = 0; i < c->out[0]->ndim; ++i) {
      Axis<inputs + 1> axis{c->out[0]->shape[i], {}};
      for (int k = 0; k <= inputs; ++k) axis.stride[k] = tensor[k]->ndim ? tensor[k]->strides[i] : 0;
      whole_.append(axis);
    }
  }
  dvt_status run() { return run(whole_); }

 private:
  static bool shorter(const Axis<inputs + 1>& x, const Axis<inputs + 1>& y) { return x.size < y.size; }

  // Splits at the shortest axis, into the fewest launches, what is too much for one.
  dvt_status run(const Block<inputs>& b) {
    int64_t rows = 1;
    for (int i = 0; i < b.axes; ++i) rows *= b.axis[i].size;
    if (b.axes < max_axes && rows * b.row.size <= int64_t{max_elements}) return run_rows(b);
    const int split = int(std::min_element(b.axis, b.axis + b.axes, shorter) - b.axis);
    const Axis<inputs + 1>& outer = b.axes ? b.axis[split] : b.row;
    const int64_t at_once = b.axes ? 1 : max_elements;
    Block<inputs> part = b;
    if (b.axes) part.axes = b.axes - 1, std::copy(b.axis + split + 1, b.axis + b.axes, part.axis + split);
    for (int64_t i = 0; i < outer.size; i += at_once) {
      if (!b.axes) part.row.size = std::min(at_once, outer.size - i);
      for (int k = 0; k <= inputs; ++k)
        if (b.data[k]) part.data[k] = b.data[k] + i * outer.stride[k] * bytes_[k];
      if (dvt_status s = run(part)) return s;
    }
    return DVT_OK;
  }

  dvt_status run_rows(Block<inputs> b) {
    Axis<inputs + 1>* const longest = std::max_element(b.axis, b.axis + b.axes, shorter);
    if (b.axes && b.row.size < shortest_row && longest->size >= shortest_row) std::swap(*longest, b.row);
    const Axis<inputs + 1>& row = b.row;
    Layout<inputs> how{};
    how.rows = 1, how.columns = uint32_t(row.size), how.axes = uint32_t(b.axes);
    for (int i = 0; i < b.axes; ++i) {
      const Axis<inputs + 1>& axis = b.axis[b.axes - 1 - i];
      how.rows *= uint32_t(axis.size), how.size[i] = divisor(uint32_t(axis.size));
      std::copy_n(axis.stride, inputs + 1, how.stride[i]);
    }
    how.neighbours = row.size == 1 || row.stride[inputs] == 1;
    for (int k = 0; k < inputs; ++k) {
      how.moves |= uint32_t(row.size > 1 && row.stride[k]) << k;
      how.neighbours &= row.size == 1 || row.stride[k] == 0 || row.stride[k] == 1;
    }
    std::copy_n(row.stride, inputs + 1, how.step);
    std::copy_n(value_, inputs, how.value);
    if (how.neighbours && how.rows == 1)
      return launch_with(kernels_.dense, grid_of((row.size + pack_size() - 1) / pack_size()), b, how);
    return launch_with(kernels_.strided, grid_of_rows(how.rows, how.columns), b, how);
  }
  dvt_status launch_with(KernelId kernel, const Grid& grid, const Block<inputs>& b, const Layout<inputs>& how) {
    if constexpr (inputs == 1) return launch(d_, c_, kernel, grid, b.data[0], b.data[1], how);
    else if constexpr (inputs == 2) return launch(d_, c_, kernel, grid, b.data[0], b.data[1], b.data[2], how);
    else return launch(d_, c_, kernel, grid, b.data[0], b.data[1], b.data[2], b.data[3], how);
  }
  // A thread takes as many neighbours as the widest access has.
  uint64_t pack_size() const { return pack_bytes / uint64_t(*std::max_element(bytes_, bytes_ + inputs + 1)); }

  dvt_device* d_;
  const dvt_call* c_;
  const ElementwiseKernels& kernels_;
  Block<inputs> whole_{};
  int64_t bytes_[inputs + 1];
  Scalar value_[inputs + 1]{};
};
}  // namespace

dvt_status run_elementwise(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) {
  switch (c->n_in) {
    case 1: return Launch<1>(d, c, kernels).run();
    case 2: return Launch<2>(d, c, kernels).run();
    default: return Launch<3>(d, c, kernels).run();
  }
}
}  // namespace gpu
