// Windows over images, and the rows of pooling: max_pool2d, avg_pool2d and their forms with one spatial axis. Not
// by oneDNN or cuDNN, which pool neither integers nor every stride.
#pragma once
#include "dovetail/layout.hpp"
#include "gpu/by_type.hpp"

namespace gpu {
using dvt::WindowAxis;
using dvt::Windows;

// A work item for each result of a pooling. A backend defines it.
Grid grid_of_windows(const Windows&);

// The windows of a call over images x (N, C, H, W), or (N, C, W), of `size` taps for each spatial axis. Without
// `dilation` it is 1.
inline Windows plan_windows(const dvt_call* c, const int64_t* size, dvt::Ints step, dvt::Ints padding,
                            dvt::Ints dilation) {
  const DLTensor &x = *c->in[0], &y = *c->out[0];
  const auto axis = [&](uint32_t i) {
    const uint32_t at = i + 2;
    return WindowAxis{
        x.shape[at], x.strides[at], y.shape[at], size[i], step[i], padding[i], dilation.data ? dilation[i] : 1};
  };
  const bool flat = x.ndim == 3;
  Windows how{x.shape[0], x.shape[1], x.strides[0], x.strides[1], {}, axis(flat ? 0 : 1)};
  how.h = flat ? WindowAxis{1, how.w.in * how.w.stride, 1, 1, 1, 0, 1} : axis(0);
  return how;
}
// The windows of a convolution: attributes step, padding, dilation.
inline Windows windows_of_convolution(const dvt_call* c) {
  const dvt::Attrs attrs(c);
  return plan_windows(c, c->in[1]->shape + 2, attrs.i64s(0), attrs.i64s(1), attrs.i64s(2));
}

inline dvt_status run_max_pool(dvt_device* d, const dvt_call* c) {
  const dvt::Attrs attrs(c);
  const Windows how = plan_windows(c, attrs.i64s(0).data, attrs.i64s(1), attrs.i64s(2), attrs.i64s(3));
  return launch(d, c, kernels_for<"dvt.max_pool2d", KernelId>(c->in[0]->dtype), grid_of_windows(how),
                dvt::data<void>(c->in[0]), dvt::data<void>(c->out[0]), how);
}
inline dvt_status run_avg_pool(dvt_device* d, const dvt_call* c) {
  const dvt::Attrs attrs(c);
  const Windows how = plan_windows(c, attrs.i64s(0).data, attrs.i64s(1), attrs.i64s(2), {});
  const uint32_t with_padding = attrs.boolean(3, true);
  return launch(d, c, kernels_for<"dvt.avg_pool2d", KernelId>(c->in[0]->dtype), grid_of_windows(how),
                dvt::data<void>(c->in[0]), dvt::data<void>(c->out[0]), how, with_padding);
}

inline void add_pooling(dvt::KernelTable& table) {
  const auto add = [&](const char* op, dvt::Row::Run run, DLDataType type) {
    dvt::Row row(op, run);
    row.in(type, DVT_O_STRIDED).out(type).deterministic();
    require_type(row, type);
    table.add(row);
  };
  for (const DLDataType type : integers + floats) {
    kernels_for<"dvt.max_pool2d", KernelId>(type) = find_kernel("max_pool", type);
    for (const char* op : {"dvt.max_pool2d", "dvt.max_pool1d"}) add(op, run_max_pool, type);
  }
  for (const DLDataType type : floats) {
    kernels_for<"dvt.avg_pool2d", KernelId>(type) = find_kernel("avg_pool", type);
    for (const char* op : {"dvt.avg_pool2d", "dvt.avg_pool1d"}) add(op, run_avg_pool, type);
  }
}
}  // namespace gpu
