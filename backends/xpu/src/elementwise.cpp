#include "elementwise.hpp"

#include <cstring>

#include "kernels/common/layout.hpp"

namespace xpu {
namespace {
// A part of a call that one launch can do: at most max_axes axes, at most max_elements elements.
template <int inputs>
struct Block {
  int axes;
  const int64_t* size;
  const int64_t* stride[inputs + 1];
  char* data[inputs + 1];  // nullptr: the input's value comes with the call
};

template <int inputs>
class Launch {
 public:
  Launch(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) : d_(d), c_(c), kernels_(kernels) {
    static constexpr int64_t none[DVT_MAX_NDIM] = {};
    const DLTensor* out = c->out[0];
    whole_ = {out->ndim, out->shape, {}, {}};
    for (int k = 0; k <= inputs; ++k) {
      const DLTensor* t = k < inputs ? c->in[k] : out;
      const bool on_host = t->ndim == 0;
      whole_.stride[k] = on_host ? none : t->strides;
      whole_.data[k] = on_host ? nullptr : dvt::data<char>(t);
      bytes_[k] = t->dtype.bits / 8;
      if (on_host) std::memcpy(&value_[k], dvt::data<char>(t), bytes_[k]);
    }
  }
  dvt_status run() { return run(whole_); }

 private:
  // Splits at the outermost axis what is too much for one launch.
  dvt_status run(const Block<inputs>& b) {
    int64_t n = 1;
    for (int axis = 0; axis < b.axes; ++axis) n *= b.size[axis];
    if (b.axes <= max_axes && n <= int64_t{max_elements}) return is_dense(b) ? dense(b, n) : strided(b, n);
    if (b.axes == 1) return run_pieces(b);
    Block<inputs> inner = b;
    --inner.axes, ++inner.size;
    for (auto& stride : inner.stride) ++stride;
    for (int64_t i = 0; i < b.size[0]; ++i) {
      if (dvt_status s = run(inner)) return s;
      for (int k = 0; k <= inputs; ++k)
        if (inner.data[k]) inner.data[k] += b.stride[k][0] * bytes_[k];
    }
    return DVT_OK;
  }
  dvt_status run_pieces(const Block<inputs>& b) {
    Block<inputs> piece = b;
    int64_t size;
    piece.size = &size;
    for (int64_t at = 0; at < b.size[0]; at += size) {
      size = std::min<int64_t>(max_elements, b.size[0] - at);
      if (dvt_status s = run(piece)) return s;
      for (int k = 0; k <= inputs; ++k)
        if (piece.data[k]) piece.data[k] += size * b.stride[k][0] * bytes_[k];
    }
    return DVT_OK;
  }

  static bool moves(const Block<inputs>& b, int k) {
    for (int axis = 0; axis < b.axes; ++axis)
      if (b.size[axis] != 1 && b.stride[k][axis]) return true;
    return false;
  }
  static bool is_row_major(const Block<inputs>& b, int k) {
    int64_t step = 1;
    for (int axis = b.axes; axis-- > 0; step *= b.size[axis])
      if (b.size[axis] != 1 && b.stride[k][axis] != step) return false;
    return true;
  }
  static bool is_dense(const Block<inputs>& b) {
    for (int k = 0; k < inputs; ++k)
      if (moves(b, k) && !is_row_major(b, k)) return false;
    return is_row_major(b, inputs);
  }

  dvt_status dense(const Block<inputs>& b, int64_t n) {
    Dense<inputs> how{uint32_t(n), 0, {}};
    for (int k = 0; k < inputs; ++k) how.moves |= uint32_t(moves(b, k)) << k, how.value[k] = value_[k];
    return launch_with(kernels_.dense, b, how);
  }
  dvt_status strided(const Block<inputs>& b, int64_t n) {
    Strided<inputs> how{};
    how.n = uint32_t(n), how.axes = uint32_t(b.axes);
    for (int axis = 0; axis < b.axes; ++axis) {
      how.size[axis] = uint32_t(b.size[axis]);
      for (int k = 0; k <= inputs; ++k) how.stride[k][axis] = b.stride[k][axis];
    }
    std::copy_n(value_, inputs, how.value);
    return launch_with(kernels_.strided, b, how);
  }
  template <class How>
  dvt_status launch_with(KernelId kernel, const Block<inputs>& b, const How& how) {
    const Range range = range_of(how.n);
    if constexpr (inputs == 1) return launch(d_, c_, kernel, range, b.data[0], b.data[1], how);
    else if constexpr (inputs == 2) return launch(d_, c_, kernel, range, b.data[0], b.data[1], b.data[2], how);
    else return launch(d_, c_, kernel, range, b.data[0], b.data[1], b.data[2], b.data[3], how);
  }

  dvt_device* d_;
  const dvt_call* c_;
  const ElementwiseKernels& kernels_;
  Block<inputs> whole_;
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
}  // namespace xpu
