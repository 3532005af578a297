// conv2d and conv1d: by cuDNN where it has an engine for the types and sizes, else by a kernel of our own.
#include <algorithm>
#include <array>
#include <string>

#include "cudnn/graphs.hpp"
#include "device/device.hpp"
#include "gpu/by_type.hpp"
#include "gpu/window_rows.hpp"
#include "launch.hpp"
#include "settings.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

// ---- by cuDNN ----------------------------------------------------------------------

cudnn::Operand without_gaps(int64_t n, int64_t c, int64_t h, int64_t w) {
  return {{n, c, h, w}, {c * h * w, h * w, w, 1}};
}

cudnn::ConvolutionGraph graph_of(const dvt_call* c) {
  const Windows how = windows_of_convolution(c);
  const int64_t outputs = c->in[1]->shape[0], channels = c->in[1]->shape[1];
  cudnn::ConvolutionGraph g = {};
  g.type = c->in[0]->dtype, g.has_bias = dvt::has_in(c, 2);
  g.allows_tf32 = dvt::same(g.type, dvt::f32) && allows_tf32();
  g.x = without_gaps(how.images, how.channels, how.h.in, how.w.in);
  g.weight = without_gaps(outputs, channels, how.h.size, how.w.size);
  g.y = without_gaps(how.images, outputs, how.h.out, how.w.out);
  g.padding[0] = how.h.padding, g.padding[1] = how.w.padding;
  g.step[0] = how.h.step, g.step[1] = how.w.step;
  g.dilation[0] = how.h.dilation, g.dilation[1] = how.w.dilation;
  return g;
}

dvt_status run_by_library(dvt_device* d, const dvt_call* c) {
  const cudnn::PlanRef plan = cudnn::plan(d, graph_of(c));
  if (!plan) return DVT_FAIL(DVT_INTERNAL, "cuDNN has no engine for a convolution that it had one for");
  cudnn::Pointers at = {};
  at.set(cudnn::convolution_x, dvt::data<const void>(c->in[0]));
  at.set(cudnn::convolution_weight, dvt::data<const void>(c->in[1]));
  at.set(cudnn::convolution_y, dvt::data<const void>(c->out[0]));
  if (dvt::has_in(c, 2)) at.set(cudnn::convolution_bias, dvt::data<const void>(c->in[2]));
  return cudnn::run(d, c, *plan, at, c->workspace);
}

dvt_status query_library(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  const bool empty = !dvt::size(c->in[0]) || !dvt::size(c->in[1]);
  if (const cudnn::PlanRef plan = empty ? nullptr : cudnn::plan(d, graph_of(c))) {
    DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
    DVT_PUT(answer, dvt_answer, workspace, cudnn::workspace(*plan));
    return DVT_OK;
  }
  const char* const unavailable = cudnn::unavailable();
  DVT_PUT(answer, dvt_answer, reason, unavailable ? unavailable : "cuDNN has no engine for these sizes");
  return DVT_UNSUPPORTED;
}

// ---- our own ----------------------------------------------------------------------

dvt_status run(dvt_device* d, const dvt_call* c) {
  constexpr uint64_t tile = 32;  // kernels/conv2d.cu
  const Windows how = windows_of_convolution(c);
  const auto groups = uint32_t(dvt::Attrs(c).i64(3, 1));
  const uint64_t outputs = uint64_t(c->in[1]->shape[0]) / groups, places = uint64_t(how.h.out * how.w.out);
  const Grid grid = grid_of_blocks(
      uint64_t(how.images) * groups * ((outputs + tile - 1) / tile) * ((places + tile - 1) / tile), block_size);
  const auto in = [&](uint32_t i) { return dvt::has_in(c, i) ? dvt::data<const void>(c->in[i]) : nullptr; };
  return launch(d, c, kernels[type_index(c->in[0]->dtype)], grid, in(0), in(1), in(2), dvt::data<void>(c->out[0]),
                how, groups, outputs);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    // Wrapping sums of products have the same bits in signed and unsigned types.
    const DLDataType as = type.code == DVT_INT ? unsigned_of(type) : type;
    kernels[type_index(type)] = find_kernel("convolution", as);
    const bool by_library = is_float(type);
    for (const char* op : {"dvt.conv2d", "dvt.conv1d"}) {
      // cuDNN's engines count on addresses that are multiples of 16 bytes, and few of them take gaps in images.
      if (by_library) {
        dvt::Row row(op, run_by_library);
        row.in(type, 0, 4).in(type, 0, 4).in(type, DVT_O_OPTIONAL, 4).out(type, 0, 4);
        table.add(row.engine("cudnn").query(query_library));
      }
      dvt::Row row(op, run);
      table.add(row.in(type, DVT_O_STRIDED).in(type).in(type, DVT_O_OPTIONAL).out(type).deterministic());
    }
  }
}
}  // namespace gpu
