#include "dispatch/host_memory.hpp"

#include <algorithm>
#include <optional>

#include "dispatch/execute.hpp"

namespace dovetail {
Tensor empty_tensor(DType dtype, std::span<const int64_t> shape, Device& device) {
  Tensor t;
  t.set_type(dtype, &device);
  t.set_shape(shape);
  t.own(allocate(device, device.index, current_stream(device), t.bytes()));
  return t;
}

bool are_plain_bools(std::span<const uint8_t> bytes) {
  uint8_t bits = 0;
  for (const uint8_t b : bytes) bits |= b;
  return bits <= 1;
}

// `t` is dense.
static void fill(const Tensor& t, const void* data) {
  if (t.numel == 0) return;
  DLTensor host = t.view;
  host.data = const_cast<void*>(data);
  host.device = dl_device(kHostMemory, 0);
  std::optional<GilRelease> others_run;
  if (t.bytes() > kManyBytes) others_run.emplace();
  std::vector<uint8_t> plain;
  if (t.dtype == DType::b8) {
    const std::span bytes(static_cast<const uint8_t*>(data), t.numel);
    if (!are_plain_bools(bytes)) {
      plain.resize(bytes.size());
      std::ranges::transform(bytes, plain.begin(), [](uint8_t b) { return uint8_t(b != 0); });
      host.data = plain.data();
    }
  }
  copy_bytes(*t.device, current_stream(*t.device), t.view, host);
}

Tensor upload(const void* data, DType dtype, std::span<const int64_t> shape, Device& device) {
  Tensor t = empty_tensor(dtype, shape, device);
  fill(t, data);
  return t;
}

void write_elements(Tensor& t, const void* data) {
  if (t.numel == 0) return;
  if (!t.dense) return copy_into(t, upload(data, t.dtype, t.shape(), *t.device));
  value_changes(*t.storage);
  use(*t.storage, current_stream(*t.device), true);
  fill(t, data);
}

void download(const Tensor& t, void* to) {
  if (t.numel == 0) return;
  std::optional<GilRelease> others_run;
  if (t.bytes() > kManyBytes) others_run.emplace();
  const Tensor from = t.dense ? t : compact(t);
  if (from.device->host_mapped) {
    host_access(*from.storage, false);
    std::memcpy(to, from.view.data, from.bytes());
    return;
  }
  Stream& stream = current_stream(*from.device);
  use(*from.storage, stream, false);
  DLTensor host = from.view;
  host.data = to;
  host.device = dl_device(kHostMemory, 0);
  copy_bytes(*from.device, stream, host, from.view);
}
}  // namespace dovetail
