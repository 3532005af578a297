#include "device/stream.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "device/capturing.hpp"
#include "device/device.hpp"
#include "device/pool.hpp"
#include "device/queues.hpp"
#include "device/services.hpp"
#include "device/timeline.hpp"
#include "platform/platform.hpp"

namespace dovetail {
using namespace std::chrono_literals;
thread_local constinit Stream* current_streams[kMaxDevices] = {};

namespace {
// A correlation id is the number of the op's name and a running number, so that a late fault can be named without a
// history.
constexpr int kCallBits = 40;
constexpr int kNamesLog2 = 12, kProbes = 16;
std::atomic<const char*> names[1 << kNamesLog2];

// The place of a name in the table, counted from 1; 0: there is none left for it.
uint64_t number_of(const char* name) {
  uint64_t at = uint64_t(reinterpret_cast<uintptr_t>(name)) * 0x9E3779B97F4A7C15u >> (64 - kNamesLog2);
  for (int i = 0; i < kProbes; ++i, at = (at + 1) % std::size(names)) {
    const char* there = names[at].load(std::memory_order_acquire);
    if (there == name) return at + 1;
    if (!there && (names[at].compare_exchange_strong(there, name) || there == name)) return at + 1;
  }
  return 0;
}

// A fault found by ev_sync or ev_query belongs to the event's stream.
void keep(Stream& stream, dvt_status status) {
  const Failure failure = take_failure(status);
  const Error error = make_error(status, caller_of(failure.correlation_id), failure);
  if (status == DVT_DEVICE_LOST) stream.device.make_unusable(DeviceState::lost);
  stream.keep_fault(std::make_exception_ptr(error));
}
}  // namespace

const dvt_streams& stream_functions(const Device& device) { return *device.backend->table->streams; }

std::string caller_of(uint64_t correlation_id) {
  const uint64_t id = correlation_id >> kCallBits;
  const char* op = id >= 1 && id <= std::size(names) ? names[id - 1].load(std::memory_order_acquire) : nullptr;
  return op ? "[" + std::string(op) + "]" : "[an earlier call]";
}

// ---- recorded events --------------------------------------------------------------------------------------------

RecordedEvent::RecordedEvent(Stream& stream, dvt_event* event, uint64_t position, bool timing)
    : stream(stream), event(event), position(position), timing(timing), host_ns(timing ? host_clock() : 0) {}

RecordedEvent::~RecordedEvent() {
  if (!event) return;
  Queues& queues = *stream.device.queues;
  const std::lock_guard guard(queues.mutex);
  queues.events[timing].push_back(event);
}

// Positions count work: the device may have done all of it, and not yet have come to an event behind it.
bool RecordedEvent::is_past() const { return !event || (!timing && stream.has_passed(position)); }

void RecordedEvent::synchronize() const {
  if (is_past()) return;
  const GilRelease waiting;
  // ev_sync reports each fault once, in place of the end of the wait: then the wait goes on.
  for (int faults = 0; faults < 64 && stream.device.state == DeviceState::usable; ++faults) {
    const dvt_status status = stream_functions(stream.device).ev_sync(event);
    if (status == DVT_OK) return stream.set_passed(position);
    keep(stream, status);
  }
}

bool RecordedEvent::passed() const { return look() == Progress::passed; }

RecordedEvent::Progress RecordedEvent::look() const {
  if (is_past()) return Progress::passed;
  if (stream.device.state != DeviceState::usable) return Progress::passed;  // nothing runs any more
  for (int faults = 0; faults < 64; ++faults) {
    uint32_t done = 0;
    const dvt_status status = stream_functions(stream.device).ev_query(event, &done);
    if (status == DVT_OK) {
      if (done) stream.set_passed(position);
      return done ? Progress::passed : Progress::pending;
    }
    keep(stream, status);
    if (status == DVT_DEVICE_LOST) return Progress::passed;
  }
  return Progress::unknown;
}

// A device has no function that waits for a limited time. The first half millisecond is watched closely, as most
// waits are short; later looks are a sixteenth of the time so far apart, and at most 2 ms.
bool RecordedEvent::poll(Clock::time_point until, InterruptCheck* check) const {
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Progress progress = look();
    if (progress != Progress::pending) return true;
    const Clock::time_point now = Clock::now();
    if (now >= until) return false;
    if (check) (*check)();
    if (now - begin < std::chrono::microseconds(500)) std::this_thread::yield();
    else std::this_thread::sleep_for(std::clamp<Clock::duration>((now - begin) / 16, 50us, 2ms));
  }
}

void RecordedEvent::wait() const {
  if (is_past()) return;
  if (!interpreter.check_interrupt || !platform::on_main_thread()) return synchronize();
  const GilRelease waiting;
  InterruptCheck check;
  poll(Clock::time_point::max(), &check);
}

bool RecordedEvent::wait_until(Clock::time_point until) const { return poll(until, nullptr); }

RecordedEventPtr Stream::record(bool timing) {
  device.check_usable();
  if (!handle) return std::make_shared<const RecordedEvent>(*this, nullptr, 0, timing);
  const auto order = lock_unlocked(mutex_);
  return record_locked(timing);
}

RecordedEventPtr Stream::record_locked(bool timing, bool at_beginning) {
  const uint64_t here = position() - at_beginning;  // lock() has counted the work that is about to be enqueued
  if (!timing && tail_ && tail_->position == here) return tail_;
  const dvt_streams& functions = stream_functions(device);
  std::vector<dvt_event*>& spare = device.queues->events[timing];
  dvt_event* event = nullptr;
  {
    const std::lock_guard guard(device.queues->mutex);
    if (!spare.empty()) event = spare.back(), spare.pop_back();
  }
  if (!event) device.check(functions.ev_create(device.handle, timing, &event), "[event]");
  auto point =
      std::make_shared<const RecordedEvent>(*this, event, here, timing);  // gives the event back if recording fails
  device.check(functions.ev_record(event, handle), "[event]");
  if (!timing) tail_ = point;
  return point;
}

// ---- streams ----------------------------------------------------------------------------------------------------

std::unique_lock<std::mutex> Stream::lock_queue() {
  auto order = lock_unlocked(mutex_);
  device.check_usable();  // it may have been lost during the wait
  position_.store(position_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return order;
}

uint64_t Stream::correlate(const char* op) {
  const uint64_t number = ++calls_ & ((uint64_t{1} << kCallBits) - 1);
  return number_of(op) << kCallBits | std::max(number, uint64_t{1});
}

void Stream::set_passed(uint64_t position) {
  uint64_t before = passed_.load(std::memory_order_relaxed);
  while (before < position && !passed_.compare_exchange_weak(before, position, std::memory_order_acq_rel)) {
  }
}

void Stream::poll(uint64_t position) {
  if (has_passed(position) || device.state != DeviceState::usable) return;
  RecordedEventPtr point;
  {
    const std::unique_lock order(mutex_, std::try_to_lock);
    if (!order) return;
    try {
      point = tail_ && tail_->position >= position ? tail_ : record_locked(false);
    } catch (const Error& error) {
      return keep_fault(std::make_exception_ptr(error));
    }
  }
  point->passed();
}

void Stream::wait_for(Stream& other) {
  if (&other == this || other.has_passed(other.position())) return;
  if (&other.device != &device && other.device.state != DeviceState::usable) return;  // nothing runs there any more
  wait_for(*other.record());
}

void Stream::wait_for(const RecordedEvent& point) {
  device.check_usable();
  if (&point.stream == this || !point.event || point.stream.has_passed(point.position)) return;
  const Device& theirs = point.stream.device;
  const bool among_devices =
      theirs.backend == device.backend && handle && stream_functions(device).flags & DVT_S_CROSS_DEVICE;
  if (&theirs != &device && !among_devices) return point.synchronize();
  if (logs(Log::stream, 3)) log(Log::stream, 3, device.name + ": a stream waits for another of " + theirs.name);
  const auto order = lock();
  device.check(stream_functions(device).ev_wait(handle, point.event), "[stream]");
}

void Stream::synchronize() {
  device.check_usable();
  if (!has_passed(position())) record()->wait();
  device.pool->delete_adopted();
  throw_fault();
}

bool Stream::drain(std::chrono::steady_clock::time_point until) {
  if (!handle || has_passed(position())) return true;
  for (;;) {
    if (std::unique_lock order(mutex_, std::try_to_lock); order) {
      const RecordedEventPtr tail = record_locked(false);
      order.unlock();
      return tail->wait_until(until);
    }
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(1ms);
  }
}

bool Stream::idle() { return has_passed(position()) || record()->passed(); }

void Stream::keep_fault(std::exception_ptr fault) {
  {
    const std::lock_guard guard(fault_mutex_);
    if (!fault_) {
      fault_ = fault;
      return;
    }
  }
  try {
    std::rethrow_exception(fault);
  } catch (const std::exception& e) {
    log(Log::stream, 2, device.name + ": one more fault before the first was reported: " + e.what());
  }
}

void Stream::throw_fault() {
  std::exception_ptr fault;
  {
    const std::lock_guard guard(fault_mutex_);
    std::swap(fault, fault_);
  }
  if (fault) std::rethrow_exception(fault);
}

void Stream::forget_fault() {
  try {
    throw_fault();
  } catch (const std::exception& e) {
    log(Log::stream, 1, device.name + ": a fault that no wait reported: " + e.what());
  }
}

// ---- events -----------------------------------------------------------------------------------------------------

RecordedEventPtr Event::recorded() {
  const std::lock_guard guard(mutex_);
  return recorded_;
}

void Event::record(Stream& stream) {
  if (&stream.device != &device_)
    throw Error(ErrorKind::value,
                "[event] recorded on " + stream.device.name + ": expected a stream of " + device_.name);
  RecordedEventPtr point = stream.record(timing_);
  const std::lock_guard guard(mutex_);
  recorded_.swap(point);
}

void Event::wait(Stream& stream) {
  if (const RecordedEventPtr point = recorded()) stream.wait_for(*point);
}

void Event::synchronize() {
  device_.check_usable();
  if (const RecordedEventPtr point = recorded()) {
    point->wait();
    point->stream.throw_fault();
  }
}

bool Event::query() {
  device_.check_usable();
  const RecordedEventPtr point = recorded();
  return !point || point->passed();
}

uint64_t Event::elapsed_ns(Event& from, Event& to) {
  const RecordedEventPtr a = from.recorded(), b = to.recorded();
  if (!a || !b || !a->timing || !b->timing)
    throw Error(ErrorKind::value,
                "[event] no time between these events: expected two timing events that were recorded");
  if (&a->stream.device != &b->stream.device)
    throw Error(ErrorKind::value, "[event] no time between events of " + a->stream.device.name + " and " +
                                      b->stream.device.name + ": expected one device");
  if (!a->passed() || !b->passed())
    throw Error(ErrorKind::value, "[event] the device has not come to both events yet: synchronize() them first");
  Device& device = a->stream.device;
  if (!a->event) return b->host_ns - std::min(a->host_ns, b->host_ns);
  const dvt_streams& functions = stream_functions(device);
  if (!DVT_HAS(&functions, dvt_streams, ev_elapsed_ns))
    throw Error(ErrorKind::not_implemented, "[event] " + device.name + " does not measure time");
  uint64_t ns = 0;
  device.check(functions.ev_elapsed_ns(a->event, b->event, &ns), "[event]");
  return ns;
}

// ---- buffers ----------------------------------------------------------------------------------------------------

void set_current_stream(Device& device, Stream* stream) {
  if (stream == device.default_stream) stream = nullptr;
  current_streams[device.index] = stream;
  device.pool->rebind_lane(current_stream(device));
}

void use_slow(Storage& s, Stream& stream, bool write) {
  Pool& pool = *s.device->pool;
  std::vector<Stream*> before;
  {
    const std::lock_guard guard(pool.mutex_);
    const StreamUses* uses = s.uses.load(std::memory_order_relaxed);
    const auto is_own = [&](const StreamUses::Use& use) { return use.stream == &stream; };
    if (!write && (s.stream == &stream || (uses && std::any_of(uses->at.begin(), uses->at.end(), is_own)))) return;
    if (s.stream != &stream) before.push_back(s.stream);
    if (write && uses)
      for (const StreamUses::Use& use : uses->at)
        if (use.stream != &stream) before.push_back(use.stream);
  }
  // First wait, then remember: another thread that finds this stream among the uses need not wait again.
  for (Stream* other : before) stream.wait_for(*other);
  const std::lock_guard guard(pool.mutex_);
  if (write) {
    s.stream = &stream;
    delete s.uses.exchange(nullptr, std::memory_order_relaxed);
  } else {
    StreamUses* uses = s.uses.load(std::memory_order_relaxed);
    if (!uses) s.uses.store(uses = new StreamUses, std::memory_order_relaxed);
    uses->at.push_back({&stream, 0});
  }
}

void host_access(Storage& s, bool write) {
  refuse_reentry();
  s.device->check_usable();
  if (s.device->synchronous) return;
  if (capturing) [[unlikely]]
    capturing->refuse("the host looks at values of its arrays");
  std::vector<Stream*> before{s.stream};
  Pool& pool = *s.device->pool;
  if (write) {
    const std::lock_guard guard(pool.mutex_);
    if (const StreamUses* uses = s.uses.load(std::memory_order_relaxed))
      for (const StreamUses::Use& use : uses->at) before.push_back(use.stream);
  }
  for (Stream* stream : before)
    if (!stream->has_passed(stream->position())) stream->record()->wait();
  for (Stream* stream : before) stream->throw_fault();
  if (write) {
    const std::lock_guard guard(pool.mutex_);
    delete s.uses.exchange(nullptr, std::memory_order_relaxed);
  }
}

// A compact tensor whose elements share bytes, as these bytes: devices copy it so.
static DLTensor bytes_of(DLTensor t, int64_t& n) {
  static int64_t stride = 1;
  n = t.dtype.bits;
  for (int i = 0; i < t.ndim; ++i) n *= t.shape[i];
  n = (n + 7) / 8;
  t.ndim = 1, t.shape = &n, t.strides = &stride, t.dtype = {DVT_UINT, 8, 1};
  return t;
}

void copy_bytes(Device& device, Stream& stream, const DLTensor& dst, const DLTensor& src) {
  if (int64_t n; src.dtype.bits < 8) return copy_bytes(device, stream, bytes_of(dst, n), bytes_of(src, n));
  refuse_reentry();
  constexpr int32_t host = 1;  // kDLCPU
  uint64_t bytes = uint64_t(src.dtype.bits / 8) * src.dtype.lanes;
  for (int i = 0; i < src.ndim; ++i) bytes *= uint64_t(src.shape[i]);
  const bool to_host = stream.handle && dst.device.device_type == host;
  if (capturing) [[unlikely]]
    capturing->meet_copy(dst.data, dst.device.device_type == host || src.device.device_type == host);
  std::optional<HostSpan> call;
  const char* name = nullptr;
  if (recording()) [[unlikely]]
    name = copy_name(device, dst, src), call.emplace(Activity::copy_call, name);
  // The copy writes to the caller's memory, so that its own end cannot be given up by an interrupt; that of the
  // work before it can. Many devices wait for both inside copy(), with the stream's lock held.
  if (to_host && !stream.has_passed(stream.position())) {
    stream.record()->wait();
    stream.throw_fault();  // the copy from a device that was lost meanwhile fails without the cause
  }
  {
    std::optional<GilRelease> waiting;  // outlives the lock: the interpreter is not waited for with a lock held
    if (stream.handle || bytes >= uint64_t{1} << 20) waiting.emplace();
    const auto order = stream.lock();
    std::optional<DeviceSpan> span;
    if (call) span.emplace(Activity::copy, name, nullptr, stream, 0, int64_t(bytes));
    device.check(device.backend->table->copy(device.handle, &dst, &src, stream.handle), "[copy]");
  }
  if (!to_host) return;
  if (!stream.has_passed(stream.position())) stream.record()->synchronize();
  device.pool->delete_adopted();
  stream.throw_fault();
}
}  // namespace dovetail
