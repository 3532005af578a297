#include "dispatch/weights.hpp"

#include <algorithm>
#include <numeric>

#include "device/pinned.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/host_memory.hpp"
#include "dispatch/run_program.hpp"
#include "graph/file.hpp"

namespace dovetail {
namespace {
constexpr uint64_t kChunk = 8 << 20;  // bytes of one copy between a file and a device

class Pinned {
 public:
  Pinned(Device& device, uint64_t bytes) : memory_(allocate_pinned(device, bytes)) {}
  ~Pinned() {
    try {
      free_pinned(memory_.data);  // waits for the device
    } catch (const std::exception&) {
    }  // the fault comes with the next wait, and the memory stays
  }
  Pinned(const Pinned&) = delete;
  void* data() const { return memory_.data; }
  bool is_pinned() const { return memory_.pinned; }

 private:
  PinnedMemory memory_;
};

Tensor bytes_of(const Tensor& dense, uint64_t begin, uint64_t n) {  // as an array of uint8
  Tensor part = dense;
  const auto size = int64_t(n);
  part.set_type(DType::u8, dense.device);
  part.set_shape({&size, 1});
  part.view.data = static_cast<char*>(dense.view.data) + begin;
  return part;
}

// The file is read into one buffer while the device copies from the other.
Tensor upload_in_chunks(const HostArray& from, Device& device) {
  const TensorType type = from.type();
  if (from.dtype == DType::b8 || type.bytes() <= kChunk) return upload(from.data, from.dtype, from.shape, device);
  const Pinned buffers[] = {{device, kChunk}, {device, kChunk}};
  if (!buffers[0].is_pinned() || !buffers[1].is_pinned()) return upload(from.data, from.dtype, from.shape, device);
  Tensor to = empty_tensor(from.dtype, from.shape, device);
  Stream& stream = current_stream(device);
  RecordedEventPtr copied[2];
  const GilRelease others_run;
  for (uint64_t at = 0, k = 0; at < type.bytes(); at += kChunk, k ^= 1) {
    if (copied[k]) copied[k]->wait();
    const uint64_t n = std::min(kChunk, type.bytes() - at);
    std::memcpy(buffers[k].data(), from.data + at, n);
    const Tensor part = bytes_of(to, at, n);
    DLTensor host = part.view;
    host.data = buffers[k].data(), host.device = dl_device(kHostMemory, 0);
    copy_pinned(device, stream, part.view, host);
    copied[k] = stream.record();
  }
  return to;
}

void write_tensor(const Tensor& x, platform::FileDraft& to) {
  if (x.numel == 0) return;
  const Tensor t = x.dense ? x : compact(x);
  if (t.device->host_mapped) {
    host_access(*t.storage, false);
    return to.write({static_cast<const char*>(t.view.data), t.bytes()});
  }
  std::vector<char> chunk(std::min(kChunk, t.bytes()));
  for (uint64_t at = 0; at < t.bytes() && to.error().empty(); at += kChunk) {
    const uint64_t n = std::min(kChunk, t.bytes() - at);
    download(bytes_of(t, at, n), chunk.data());
    to.write({chunk.data(), n});
  }
}

const char* dtype_to_save(const std::string& name, const Tensor& x) {
  if (const char* dtype = safetensors::dtype_name(x.dtype)) {
    if (is_packed(x.dtype) && x.numel * info(x.dtype).bits() % 8)
      throw Error(ErrorKind::value, name + ": " + std::to_string(x.numel) + " elements of " + info(x.dtype).name +
                                        " do not fill their last byte: expected a number that does");
    return dtype;
  }
  const bool wide = x.dtype == DType::c128;
  throw Error(ErrorKind::value,
              name + ": safetensors has no dtype " + info(x.dtype).name + ": expected another one",
              wide ? "save x.real and x.imag, or x.astype(\"complex64\")" : "save x.astype() to another dtype");
}
}  // namespace

Tensor load_tensor(const safetensors::File& file, const safetensors::Entry& entry, Device& device) {
  const HostArray from = file.array(entry);
  if (!device.host_mapped) return upload_in_chunks(from, device);
  const int item = info(from.dtype).bytes();
  return on_device(from, device, uint64_t(is_complex(from.dtype) ? item / 2 : item));
}

void save_tensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays,
                  Json metadata) {
  std::vector<size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto width = [&](size_t i) { return -info(arrays[i].second.dtype).bytes(); };
  std::ranges::stable_sort(order, {}, width);
  std::vector<safetensors::Entry> entries(arrays.size());
  uint64_t at = 0;
  for (const size_t i : order) {
    const auto& [name, x] = arrays[i];
    entries[i] = {name, dtype_to_save(name, x), {x.shape().begin(), x.shape().end()}, at, at + x.bytes()};
    at += x.bytes();
  }
  platform::FileDraft draft(path);
  draft.write(safetensors::header_of(entries, std::move(metadata)));
  for (const size_t i : order) write_tensor(arrays[i].second, draft);
  draft.commit();
  if (!draft.error().empty()) throw write_error(path, draft.error());
}
}  // namespace dovetail
