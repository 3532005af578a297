// A device's streams as a whole, and whether it can be used.
#include "device/device.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "device/fork.hpp"
#include "device/pool.hpp"
#include "device/queues.hpp"
#include "device/services.hpp"
#include "platform/platform.hpp"

namespace dovetail {
Interpreter interpreter;
thread_local constinit const char* inside = nullptr;

void throw_reentry() {
  throw Error(ErrorKind::runtime,
              std::string("dovetail was called inside ") + inside +
                  ", for which it waits: expected work on the buffers alone; an op that is made "
                  "of others needs no kernel, its decomposition runs");
}

void InterruptCheck::look() {
  if (platform::on_main_thread()) interpreter.check_interrupt();
  next_ = Clock::now() + kBetween;
}

std::vector<Stream*> streams_of(Device& device) {
  const std::lock_guard guard(device.queues->mutex);
  return device.queues->all;
}

void open_queues(Device& device) {
  device.queues = new Queues;
  dvt_stream* handle = nullptr;
  const dvt_backend* table = device.backend->table;
  if (DVT_HAS(table, dvt_backend, streams)) {
    check(table->streams->create(device.handle, 0, &handle), "its streams' create");
  }
  device.synchronous = !handle && !device.backend->interpreted;
  device.default_stream = new Stream(device, handle);
  device.queues->all.push_back(device.default_stream);
}

// The queues are drained.
void close_queues(Device& device) {
  if (!device.has_streams()) return;
  const dvt_streams& functions = stream_functions(device);
  for (Stream* stream : streams_of(device)) stream->tail_.reset();
  const std::lock_guard guard(device.queues->mutex);
  for (std::vector<dvt_event*>& events : device.queues->events) {
    for (dvt_event* event : events) functions.ev_destroy(event);
    events.clear();
  }
  for (Stream* stream : device.queues->all) functions.destroy(stream->handle);
}

bool Device::has_streams() const { return default_stream->handle; }

// A stream without users or, if the device has no more, the one with the fewest users; nullptr: make a new one.
// With the mutex held.
static Stream* reuse(const Queues& queues, const Stream* default_stream, uint32_t most, int priority) {
  const bool full = most && queues.all.size() + queues.coming >= most;
  Stream* best = nullptr;
  for (Stream* s : queues.all) {
    if (s == default_stream || (!full && (s->users || s->priority != priority))) continue;
    const auto rank = [&](const Stream& x) { return std::pair(x.users, x.priority != priority); };
    if (!best || rank(*s) < rank(*best)) best = s;
  }
  return best || !full ? best : queues.all.front();
}

Stream* Device::new_stream(int priority) {
  check_usable();
  if (!has_streams()) return default_stream;
  {
    const std::lock_guard guard(queues->mutex);
    if (Stream* stream = reuse(*queues, default_stream, props.max_streams, priority)) {
      const bool idle = !stream->users++;
      if (idle && stream != default_stream) stream->forget_fault();
      return stream;
    }
    ++queues->coming;
  }
  dvt_stream* handle = nullptr;
  const dvt_status status = stream_functions(*this).create(this->handle, priority, &handle);
  const std::lock_guard guard(queues->mutex);
  --queues->coming;
  check(status, "[stream]");
  auto* stream = new Stream(*this, handle, priority);
  stream->users = 1;
  queues->all.push_back(stream);
  return stream;
}

void Device::free_stream(Stream* stream) {
  if (!stream) return;
  const std::lock_guard guard(queues->mutex);
  if (stream->users) --stream->users;
}

void Device::synchronize() {
  check_usable();
  const std::vector<Stream*> all = streams_of(*this);
  for (Stream* stream : all)
    if (!stream->has_passed(stream->position())) stream->record()->wait();
  pool->delete_adopted();
  for (Stream* stream : all) stream->throw_fault();
}

// ---- whether it can be used -------------------------------------------------------------------------------------

void Device::make_unusable(DeviceState why) {
  state = why;
  synchronous = false;
  if (pool) pool->close_caches();
}

void Device::throw_unusable() const {
  switch (state) {
    case DeviceState::lost:
      throw Error(ErrorKind::device_lost,
                  "[" + name + "] the device was lost, and the contents of its memory; " +
                      (DVT_HAS(backend->table, dvt_backend, device_reset) ? "reset() it, or " : "") +
                      "start the process again");
    case DeviceState::forked:
      throw Error(ErrorKind::runtime,
                  "[" + name +
                      "] cannot be used in a forked process, which its driver does not "
                      "survive; start processes with the method 'spawn', or use the device after the "
                      "fork only");
    default: throw Error(ErrorKind::runtime, "[" + name + "] was closed: the process is ending");
  }
}

void Device::fail(dvt_status status, const std::string& what) {
  if (status == DVT_DEVICE_LOST) make_unusable(DeviceState::lost);
  const Failure failure = take_failure(status);  // of this call, or of an earlier one that the device has come to
  throw make_error(status, failure.correlation_id ? caller_of(failure.correlation_id) : what, failure);
}

void Device::reset() {
  if (state != DeviceState::lost) check_usable();
  const dvt_backend* table = backend->table;
  if (!DVT_HAS(table, dvt_backend, device_reset))
    throw Error(ErrorKind::not_implemented, "[" + name + "] this device cannot be reset; start the process again");
  check(table->device_reset(handle), "[reset]");
  ++resets;
  for (Stream* stream : streams_of(*this)) {
    stream->set_passed(stream->position());
    stream->forget_fault();
  }
  synchronous = !has_streams() && !backend->interpreted;
  state = DeviceState::usable;
}

// ---- fork -------------------------------------------------------------------------------------------------------

void queues_before_fork(Device& device) { device.queues->mutex.lock(); }
void queues_after_fork(Device& device, bool in_child) {
  for (Stream* stream : device.queues->all) {
    if (!in_child) break;
    new (&stream->mutex_) std::mutex;  // another thread may have been at work there
    new (&stream->fault_mutex_) std::mutex;
  }
  device.queues->mutex.unlock();
}
}  // namespace dovetail
