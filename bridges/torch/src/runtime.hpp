// The bridge's view of the runtime: devices by torch's index, errors as torch's exceptions, dtypes, memory as
// tensors.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/dlpack.h>  // before abi.h, which then declares no DLPack types of its own
#include <torch/library.h>

#include <string>
#include <vector>

#include "dovetail/runtime.h"

namespace dovetail_torch {

// ---- devices: "dovetail:i" is devices()[i]
struct DeviceEntry {
  dvr_device* handle;
  std::string name;  // "sim:0"
  bool host_mapped, fork_safe;
};
const std::vector<DeviceEntry>& devices();
const DeviceEntry& device_at(c10::DeviceIndex index);
inline c10::Device torch_device(c10::DeviceIndex index) { return {c10::DeviceType::PrivateUse1, index}; }

c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);
// -1 is the current device, as everywhere in torch.
inline c10::DeviceIndex or_current(c10::DeviceIndex index) { return index < 0 ? current_device() : index; }

class OnDevice {
 public:
  explicit OnDevice(c10::DeviceIndex index) : before_(current_device()) { set_current_device(index); }
  ~OnDevice() { set_current_device(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  c10::DeviceIndex before_;
};

// ---- errors
[[noreturn]] void raise(dvr_status status);
[[noreturn]] void raise_interrupt();  // KeyboardInterrupt
inline void check(dvr_status status) {
  if (status != DVR_OK) [[unlikely]]
    raise(status);
}
// Torch's own kernel on the CPU decides about a call that the runtime refuses, and words the error.
inline bool is_refusal(dvr_status status) {
  return status == DVR_TYPE || status == DVR_VALUE || status == DVR_NOT_IMPLEMENTED;
}

// ---- dtypes
bool to_dl(at::ScalarType from, DLDataType& to);
at::ScalarType from_dl(DLDataType from);

// ---- memory
c10::Allocator* allocator();
dvr_stream* to_runtime(const c10::Stream& stream);
// The buffer of a storage; nullptr: it has no memory. Memory of the device that came as a bare pointer, as
// at::from_blob() and DLPack capsules of torch bring it, is adopted first.
void release(void* buffer);
dvr_buffer* adopted_buffer_of(const c10::Storage& s);
inline dvr_buffer* buffer_of(const c10::Storage& s) {
  const c10::DataPtr& p = s.data_ptr();
  return p.get_deleter() == &release ? static_cast<dvr_buffer*>(p.get_context()) : adopted_buffer_of(s);
}
inline dvr_buffer* buffer_of(const at::Tensor& t) { return buffer_of(t.storage()); }
c10::DataPtr data_ptr(dvr_buffer* buffer, void* data, c10::DeviceIndex index);
// The tensor as the runtime takes it; its sizes and strides point into `t`. False: not a dtype of the runtime.
bool describe(const at::Tensor& t, dvr_tensor& to);
// Flat bytes of a storage.
void describe_bytes(const c10::Storage& s, int64_t& size, dvr_tensor& to);
// Takes over a new row-major result of the runtime.
at::Tensor wrap(const dvr_tensor& result, c10::DeviceIndex index);
// A copy in row-major host memory; its conjugate and negative bits are those of `t`.
at::Tensor to_host(const at::Tensor& t);

at::Tensor empty(c10::IntArrayRef size, at::ScalarType dtype, c10::DeviceIndex index);
const at::Tensor& resize_tensor(const at::Tensor& t, c10::IntArrayRef size,
                                std::optional<at::MemoryFormat> format = {});
void resize_storage(const c10::Storage& storage, size_t bytes);

}  // namespace dovetail_torch
