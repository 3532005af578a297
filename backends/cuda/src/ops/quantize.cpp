#include <array>
#include <cstring>
#include <string>

#include "gpu/by_type.hpp"
#include "kernels/common/quantization.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> quantizers{}, dequantizers{};

// The value of an input that is a host scalar goes to `value`; nullptr, as for one that is not given.
const void* memory(const dvt_call* c, uint32_t i, void* value) {
  if (!dvt::has_in(c, i)) return nullptr;
  const DLTensor* t = c->in[i];
  if (t->device.device_type != 1 /* kDLCPU */) return dvt::data<void>(t);
  std::memcpy(value, dvt::data<void>(t), bytes_of(t->dtype));
  return nullptr;
}

dvt_status run(dvt_device* d, const dvt_call* c, KernelId kernel, DLDataType floating, DLDataType quantized) {
  const Channels channels = plan_channels(c->in[0], dvt::Attrs(c).i64(0, -1));
  Quantization how{};
  const void* const scale = memory(c, 1, &how.scale);
  const void* const zero_point = memory(c, 2, &how.zero_point);
  how.zero_points = zero_point ? uint32_t(dvt::size(c->in[2])) : 1;
  how.sign = quantized.code == DVT_INT ? 128 : 0;
  return launch(d, c, kernel, grid_of_channels(channels, bytes_of(floating)), dvt::data<void>(c->in[0]), scale,
                zero_point, dvt::data<void>(c->out[0]), channels, how);
}
dvt_status quantize(dvt_device* d, const dvt_call* c) {
  const DLDataType type = c->in[0]->dtype;
  return run(d, c, quantizers[type_index(type)], type, c->out[0]->dtype);
}
dvt_status dequantize(dvt_device* d, const dvt_call* c) {
  const DLDataType type = c->out[0]->dtype;
  return run(d, c, dequantizers[type_index(type)], type, c->in[0]->dtype);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  constexpr unsigned value = DVT_O_HOST_SCALAR, optional = DVT_O_HOST_SCALAR | DVT_O_OPTIONAL;
  for (const DLDataType type : floats) {
    quantizers[type_index(type)] = find_kernel("quantize", type);
    dequantizers[type_index(type)] = find_kernel("dequantize", type);
    for (const DLDataType byte : {dvt::i8, dvt::u8}) {
      dvt::Row to("dvt.quantize", quantize), from("dvt.dequantize", dequantize);
      to.in(type).in(type, value).in(dvt::i64, optional).out(byte).deterministic();
      from.in(byte).in(type, value).in(dvt::i64, optional).out(type).deterministic();
      table.add(to);
      table.add(from);
    }
  }
}
}  // namespace gpu
