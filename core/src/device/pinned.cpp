#include "device/pinned.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>

#include "device/queues.hpp"
#include "device/stream.hpp"

namespace dovetail {
namespace {
constexpr std::align_val_t kAlign{64};  // of memory that is not the device's

struct Block {
  Device* device;
  uint64_t bytes;
  bool pinned;
};
std::mutex mutex;
auto& blocks = *new std::map<uintptr_t, Block>;
}  // namespace

PinnedMemory allocate_pinned(Device& device, uint64_t bytes) {
  const uint64_t align = device.props.alloc_align;
  const uint64_t size = (std::max<uint64_t>(bytes, 1) + align - 1) / align * align;
  void* data = nullptr;
  dvt_status status = DVT_UNSUPPORTED;
  if (size >= bytes) {
    Stream& stream = *device.default_stream;
    const GilRelease waiting;
    const auto order = stream.lock();
    status = device.backend->table->alloc(device.handle, size, DVT_MEM_PINNED, stream.handle, &data);
  }
  const bool pinned = status == DVT_OK && data;
  if (status != DVT_OK && status != DVT_UNSUPPORTED) device.fail(status, "[alloc_pinned]");
  if (!pinned) data = ::operator new(size, kAlign, std::nothrow);
  if (!data)
    throw Error(ErrorKind::memory, "[alloc_pinned] no memory for " + std::to_string(bytes) + " bytes on the host");
  const std::lock_guard guard(mutex);
  blocks[uintptr_t(data)] = {&device, size, pinned};
  return {data, pinned};
}

void free_pinned(void* data) {
  if (!data) return;
  Block block;
  {
    const std::lock_guard guard(mutex);
    const auto at = blocks.find(uintptr_t(data));
    if (at == blocks.end())
      throw Error(ErrorKind::value, "[free_pinned] expected an address that dvr_alloc_pinned returned");
    block = at->second;
    blocks.erase(at);
  }
  if (!block.pinned) return ::operator delete(data, kAlign);
  Device& device = *block.device;
  if (device.state != DeviceState::usable) return;  // it went with the device
  const GilRelease waiting;
  for (Stream* stream : streams_of(device))
    if (!stream->has_passed(stream->position())) stream->record()->synchronize();
  Stream& stream = *device.default_stream;
  const auto order = stream.lock();
  device.backend->table->dealloc(device.handle, data, DVT_MEM_PINNED, stream.handle);
}

bool is_pinned(const Device& device, const void* data, uint64_t bytes) {
  const std::lock_guard guard(mutex);
  auto at = blocks.upper_bound(uintptr_t(data));
  if (at == blocks.begin()) return false;
  const auto& [begin, block] = *--at;
  return block.pinned && block.device == &device && uintptr_t(data) - begin <= block.bytes &&
         bytes <= block.bytes - (uintptr_t(data) - begin);
}

void copy_pinned(Device& device, Stream& stream, const DLTensor& dst, const DLTensor& src) {
  refuse_reentry();
  const GilRelease waiting;
  const auto order = stream.lock();
  device.check(device.backend->table->copy(device.handle, &dst, &src, stream.handle), "[copy]");
}
}  // namespace dovetail
