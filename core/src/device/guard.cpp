#include "device/guard.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "device/device.hpp"
#include "device/environment.hpp"
#include "device/pool.hpp"
#include "device/queues.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
constexpr uint64_t kZone = 2048;  // bytes on either side, more in front where the device aligns by more
constexpr std::byte kJunk{0xDB};  // neither 0 nor NaN in any type, and large in all of them
constexpr uint64_t kMost = uint64_t{1} << 60;  // larger buffers are out of memory anyway
}  // namespace

std::atomic<uint8_t> debug_checks{
    uint8_t((environment_switch("DOVETAIL_POISON_CALLS", false) ? poisoned_calls : 0) |
            (environment_switch("DOVETAIL_GUARD_MEMORY", false) ? guarded_memory : 0))};

// The zones around one buffer, which is `bytes` of `block` from `front` on.
struct MemoryGuard {
  Device& device;
  Storage* const block;
  const uint64_t front, bytes;
  const uint8_t salt;  // zones differ, so that a kernel which copies one into another does not go unseen
  std::atomic<const char*> op{nullptr};
  std::atomic<int> output{0};
  bool reported = false;  // by Pool::mutex_

  MemoryGuard(Device& device, Storage* block, uint64_t front, uint64_t bytes, uint8_t salt)
      : device(device), block(block), front(front), bytes(bytes), salt(salt) {}
  MemoryGuard(const MemoryGuard&) = delete;
  ~MemoryGuard() { release(block); }

  std::byte pattern(uint64_t i) const { return std::byte(uint8_t(salt + 37 * i)); }
  uint64_t total() const { return front + bytes + kZone; }
  DLTensor view(uint64_t begin, int64_t& size) const {
    static int64_t one = 1;
    return {static_cast<std::byte*>(block->data) + begin, device.dl, 1, info(DType::u8).dl, &size, &one, 0};
  }
  void fill(Stream& stream) const;
  void read(Stream& stream, uint64_t begin, std::vector<std::byte>& to) const;
  std::vector<Overrun> look() const;
  void inspect();

  // The pool's list; the caller holds its mutex.
  static std::vector<std::shared_ptr<MemoryGuard>>& all(Device& device) { return device.pool->guards_; }
  static std::vector<Overrun>& found(Device& device) { return device.pool->overruns_; }
  static std::mutex& mutex(Device& device) { return device.pool->mutex_; }
};

void MemoryGuard::fill(Stream& stream) const {
  std::vector<std::byte> image(total(), kJunk);
  for (uint64_t i = 0; i < total(); i = i + 1 == front ? front + bytes : i + 1) image[i] = pattern(i);
  auto size = int64_t(total());
  const DLTensor to = view(0, size);
  DLTensor host = to;
  host.data = image.data(), host.device = dl_device(1 /* kDLCPU */, 0);
  copy_bytes(device, stream, to, host);
}

// Not copy_bytes(), which lets go of other buffers; it is there when `stream` has come so far.
void MemoryGuard::read(Stream& stream, uint64_t begin, std::vector<std::byte>& to) const {
  auto size = int64_t(to.size());
  const DLTensor from = view(begin, size);
  DLTensor host = from;
  host.data = to.data(), host.device = dl_device(1 /* kDLCPU */, 0);
  const GilRelease waiting;  // outlives the lock: the interpreter is not waited for with a lock held
  const auto order = stream.lock();
  device.check(device.backend->table->copy(device.handle, &host, &from, stream.handle), "[copy]");
}

// Nothing in flight uses the buffer.
std::vector<Overrun> MemoryGuard::look() const {
  Stream* stream = device.new_stream(0);  // one that need not wait for what others are doing
  const auto give_back = std::shared_ptr<Stream>(stream, [this](Stream* s) { device.free_stream(s); });
  std::vector<std::byte> before(front), behind(kZone);
  read(*stream, 0, before);
  read(*stream, front + bytes, behind);
  stream->record()->synchronize();
  uint64_t first = 0, end = kZone;  // what is as it should be: before the beginning, and from its end on
  while (first < front && before[first] == pattern(first)) ++first;
  while (end && behind[end - 1] == pattern(front + bytes + end - 1)) --end;
  const char* by = op.load(std::memory_order_acquire);
  const Overrun here{by ? by : "", output.load(std::memory_order_relaxed), bytes, false, 0};
  std::vector<Overrun> all;
  if (first < front) all.push_back(here), all.back().bytes = front - first;
  if (end) all.push_back(here), all.back().behind = true, all.back().bytes = end;
  return all;
}

void MemoryGuard::inspect() try {
  std::vector<Overrun> all = look();
  {
    const std::lock_guard guard(mutex(device));
    if (std::exchange(reported, reported || !all.empty())) return;
    found(device).insert(found(device).end(), all.begin(), all.end());
  }
  for (const Overrun& o : all) log(Log::memory, 1, device.name + ": " + to_string(o));
} catch (const Error&) {  // the device is lost, and what was in its memory
}

std::string to_string(const Overrun& o) {
  const std::string whose = o.output == kWorkspace ? "its workspace"
                            : o.output == kPack    ? "its packed operand"
                                                   : "its output " + std::to_string(o.output);
  return (o.op.empty() ? "a copy" : "[" + o.op + "]") + " wrote " + std::to_string(o.bytes) + " byte" +
         (o.bytes == 1 ? "" : "s") + (o.behind ? " past the end of " : " before the beginning of ") +
         (o.op.empty() ? "an array" : whose) + " (" + human_bytes(o.size) + ")";
}

// A deleter. The queues are through with the buffer.
void end_guard(Storage* s) {
  auto* own = static_cast<MemoryGuard*>(s->owner);
  own->inspect();
  std::shared_ptr<MemoryGuard> last;  // gives the block back when the mutex is not held any more
  const std::lock_guard guard(MemoryGuard::mutex(own->device));
  auto& all = MemoryGuard::all(own->device);
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& g) { return g.get() == own; });
  last = std::move(*at);
  all.erase(at);
}

Storage* allocate_guarded(Device& device, Stream& stream, uint64_t bytes) {
  if (bytes > kMost) return allocate_block(device, stream, bytes);
  static std::atomic<uint8_t> number{0};
  const uint64_t align = device.props.alloc_align, front = (kZone + align - 1) & ~(align - 1);
  Storage* block = allocate_block(device, stream, front + bytes + kZone);
  const auto guard = std::make_shared<MemoryGuard>(device, block, front, bytes, number += 91);
  guard->fill(stream);
  Storage* s = adopt(device, stream, static_cast<std::byte*>(block->data) + front, end_guard, guard.get());
  const std::lock_guard held(MemoryGuard::mutex(device));
  MemoryGuard::all(device).push_back(guard);
  return s;
}

void note_writer(const Storage& s, const char* op, int output) {
  if (s.deleter != end_guard) return;
  auto* guard = static_cast<MemoryGuard*>(s.owner);
  guard->output.store(output, std::memory_order_relaxed);
  guard->op.store(op, std::memory_order_release);
}

void poison_calls(bool on) {
  if (on != enabled(poisoned_calls)) debug_checks ^= poisoned_calls;
}

void guard_memory(bool on) {
  if (on == enabled(guarded_memory)) return;
  debug_checks ^= guarded_memory;
  for (Device* device : devices())
    if (on) device->pool->close_caches();
}

std::vector<Overrun> overruns(Device& device) {
  for (Stream* stream : streams_of(device)) stream->record()->synchronize();
  device.pool->delete_adopted();
  std::vector<std::shared_ptr<MemoryGuard>> all;
  {
    const std::lock_guard guard(MemoryGuard::mutex(device));
    all = MemoryGuard::all(device);
  }
  for (const auto& guard : all) guard->inspect();
  const std::lock_guard guard(MemoryGuard::mutex(device));
  return std::exchange(MemoryGuard::found(device), {});
}
}  // namespace dovetail
