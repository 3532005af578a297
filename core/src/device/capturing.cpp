#include "device/capturing.hpp"

#include <algorithm>
#include <utility>

#include "device/device.hpp"
#include "device/packs.hpp"
#include "device/queues.hpp"
#include "text.hpp"

namespace dovetail {
thread_local constinit Capturing* capturing = nullptr;
bool (*release_captures)(Device&) = nullptr;

// ---- memory -----------------------------------------------------------------------------------------------------

CaptureMemory::~CaptureMemory() {
  for (Storage* s : all_) {
    s->owner = nullptr;
    s->refs.store(1, std::memory_order_relaxed);
    release(s);
  }
}

Storage* CaptureMemory::take(uint64_t bytes) {
  const uint32_t size_class = size_class_of(bytes);
  const auto found =
      std::find_if(free_.rbegin(), free_.rend(), [&](auto* s) { return s->size_class == size_class; });
  if (found == free_.rend()) return nullptr;
  Storage* const s = *found;
  free_.erase(std::next(found).base());
  hand_out(*s);
  return s;
}

Storage* CaptureMemory::grow(Stream& stream, uint64_t bytes) {
  const uint32_t size_class = size_class_of(bytes);
  if (size_class >= kSizeClasses || bytes_ + class_bytes(size_class) > most_) return nullptr;
  Storage* const s = allocate_spare(device, stream, bytes);
  if (!s) return nullptr;
  s->owner = this;
  all_.push_back(s);
  bytes_ += s->capacity;
  free_.reserve(all_.size());
  return s;
}

void CaptureMemory::give_back(Storage* s) noexcept { free_.push_back(s); }

Storage* CaptureMemory::number(size_t i, Stream& stream, uint64_t bytes, bool& is_new) {
  is_new = i == numbers_.size();
  if (is_new) {
    Storage* s = take(bytes);
    if (!s) s = grow(stream, bytes);
    if (!s) return nullptr;
    numbers_.push_back(s);
  }
  retain(numbers_[i]);
  return numbers_[i];
}

void CaptureMemory::hold() {
  for (Storage* s : all_) retain(s);
}

void CaptureMemory::use(Stream& stream) {
  for (Storage* s : all_) dovetail::use(*s, stream, true);
}

// ---- the runs ---------------------------------------------------------------------------------------------------

Capturing::Capturing(CaptureMemory& memory, Stream& stream, Step step)
    : memory_(memory),
      step_(step),
      cache_(std::exchange(thread_caches[memory.device.index], nullptr)),
      stream_(std::exchange(current_streams[memory.device.index], &stream)) {
  capturing = this;
}

Capturing::~Capturing() {
  capturing = nullptr;
  thread_caches[memory_.device.index] = cache_;
  current_streams[memory_.device.index] = stream_;
}

void Capturing::refuse(const std::string& why) {
  if (refusal_.empty()) refusal_ = why;
  if (records()) throw Error(ErrorKind::not_implemented, "[compile] " + why);
}

Storage* Capturing::allocate(Stream& stream, uint64_t bytes) {
  Storage* s = memory_.take(bytes);
  if (!s && records()) refuse("it took other memory when it was recorded");
  if (!s && refusal_.empty()) {
    s = memory_.grow(stream, bytes);
    if (!s) refuse("a run takes more memory than captures may hold, beyond " + human_bytes(memory_.bytes()));
  }
  return s;
}

Storage* Capturing::number(Stream& stream, uint64_t bytes, bool& is_new) {
  Storage* const s = memory_.number(numbers_, stream, bytes, is_new);
  if (!s || (is_new && records())) refuse("it took other numbers when it was recorded");
  if (!s) return nullptr;
  ++numbers_;
  new_number_ = is_new ? s->data : nullptr;
  return s;
}

void Capturing::meet_launch(const char* name, bool safe) {
  ++launches_;
  if (!safe) refuse(std::string(name) + " is not marked as safe to capture");
}

void Capturing::meet_copy(const void* to, bool with_host) {
  if (with_host && to != new_number_) refuse("it copies between the host's memory and the device's");
}

// ---- a stream to record on --------------------------------------------------------------------------------------

RecordingStream::RecordingStream(Device& device) : device_(device) {
  {
    const std::lock_guard guard(device.queues->mutex);
    const uint32_t most = device.props.max_streams;
    if (most && device.queues->all.size() + device.queues->coming >= most)
      throw Error(ErrorKind::not_implemented, "[compile] the device has no further stream to record on");
    ++device.queues->coming;
  }
  dvt_stream* handle = nullptr;
  try {
    device.check(stream_functions(device).create(device.handle, 0, &handle), "[stream]");
    stream_ = std::make_unique<Stream>(device, handle);
  } catch (...) {
    let_go();
    throw;
  }
}

RecordingStream::~RecordingStream() {
  if (device_.state != DeviceState::closed) stream_functions(device_).destroy(stream_->handle);
  let_go();
}

void RecordingStream::let_go() {
  const std::lock_guard guard(device_.queues->mutex);
  --device_.queues->coming;
}
}  // namespace dovetail
