#include "device/timeline.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <unordered_set>

#include "device/device.hpp"
#include "device/pool.hpp"
#include "device/queues.hpp"
#include "device/services.hpp"
#include "platform/platform.hpp"

namespace dovetail {
namespace {
constexpr size_t kMostPending = 256;  // device times of a thread that are read at the end; more are read on the way

// A point that both clocks have a time for.
struct Reference {
  RecordedEventPtr event;
  uint64_t host = 0;         // its time
  uint64_t uncertainty = 0;  // the time may be off by this
};

struct Pending {
  size_t record;
  RecordedEventPtr begin, end;
  std::shared_ptr<const Reference> reference;
};

// What one thread records. Its mutex is held by the thread itself and for a moment at the end; the owner may hold a
// stream's or a pool's at the same time.
struct ThreadLog {
  uint64_t generation = 0, limit = 0, thread = 0;
  std::mutex mutex;
  bool closed = false;
  uint64_t dropped = 0;
  std::deque<Record> records;
  std::deque<Pending> pending;
};

struct Session {
  std::mutex mutex;  // short
  bool active = false;
  uint64_t limit = 0, begin = 0;
  std::vector<std::shared_ptr<ThreadLog>> logs;
  std::shared_ptr<const Reference> references[kMaxDevices];
  std::unordered_set<std::string> names;  // never shrinks: records point into it
  Session* of_parent = nullptr;           // before the fork; it stays
};
Session* session = new Session;
std::atomic<uint64_t> generation{0};  // of the session; 0: none yet

thread_local constinit bool thread_gone = false;
struct OwnLog {
  ~OwnLog() { thread_gone = true; }
  std::shared_ptr<ThreadLog> log;
};
thread_local OwnLog own;
thread_local constinit const DeviceSpan* running = nullptr;
thread_local constinit Stream* running_on = nullptr;

ThreadLog* own_log() {
  if (thread_gone) return nullptr;
  const uint64_t now = generation.load(std::memory_order_acquire);
  if (own.log && own.log->generation == now) [[likely]]
    return own.log.get();
  auto log = std::make_shared<ThreadLog>();
  log->thread = platform::thread_id();
  const std::lock_guard guard(session->mutex);
  if (!session->active) return nullptr;
  log->generation = generation.load(std::memory_order_relaxed), log->limit = session->limit;
  session->logs.push_back(log);
  own.log = std::move(log);
  return own.log.get();
}

uint64_t elapsed(Device& device, const RecordedEvent& from, const RecordedEvent& to, bool& known) {
  uint64_t ns = 0;
  const dvt_status status = stream_functions(device).ev_elapsed_ns(from.event, to.event, &ns);
  if (status != DVT_OK) take_failure(status), known = false;
  return ns;
}

// Replaces the host's times by the device's, whose events have passed.
void place(Record& record, const Pending& p) {
  Device& device = *record.device;
  if (device.state != DeviceState::usable) return;
  bool known = true;
  const uint64_t begin = p.reference->host + elapsed(device, *p.reference->event, *p.begin, known);
  const uint64_t length = elapsed(device, *p.begin, *p.end, known);
  if (!known) return;
  // No work begins before the host enqueued it, nor ends after it was seen to be done. An idle stream comes to the
  // event before the work arrives.
  const uint64_t end = std::min(begin + length, host_clock());
  record.begin = std::max(begin, record.enqueued);
  record.end = std::max(end, record.begin);
  record.device_time = true;
}

void add(ThreadLog& log, Record record, RecordedEventPtr begin = nullptr, RecordedEventPtr end = nullptr,
         std::shared_ptr<const Reference> reference = nullptr) {
  const std::lock_guard guard(log.mutex);
  if (log.closed) return;
  if (log.records.size() >= log.limit) {
    ++log.dropped;
    return;
  }
  log.records.push_back(record);
  if (!end) return;
  log.pending.push_back({log.records.size() - 1, std::move(begin), std::move(end), std::move(reference)});
}

// Reads the device times of what the device has finished. Before a call, not after it: reading may replace the
// reason that the plugin gave for a failed call.
void read_pending(ThreadLog& log) {
  const std::lock_guard guard(log.mutex);
  while (log.pending.size() > kMostPending && log.pending.front().end->passed()) {
    place(log.records[log.pending.front().record], log.pending.front());
    log.pending.pop_front();
  }
}

bool measures_time(const Device& device) {
  return device.has_streams() && DVT_HAS(&stream_functions(device), dvt_streams, ev_elapsed_ns);
}

DeviceClock clock_of(const Device& device) {
  if (!device.has_streams()) return DeviceClock::run;
  return measures_time(device) ? DeviceClock::events : DeviceClock::host;
}

// The default stream is empty. The narrowest of several windows of the host's clock around an event is taken.
std::shared_ptr<const Reference> find_reference(Device& device) {
  auto best = std::make_shared<Reference>();
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = host_clock();
    const RecordedEventPtr event = device.default_stream->record(true);
    event->synchronize();
    const uint64_t uncertainty = (host_clock() - before) / 2;
    if (i && uncertainty >= best->uncertainty) continue;
    best->event = event, best->host = before + uncertainty, best->uncertainty = uncertainty;
  }
  return best;
}

const char* kept_name(const std::string& name) {
  const std::lock_guard guard(session->mutex);
  return session->names.insert(name).first->c_str();
}
}  // namespace

uint64_t recording_number() { return generation.load(std::memory_order_relaxed); }

uint64_t host_clock() {
  return uint64_t(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// ---- begin and end ----------------------------------------------------------------------------------------------

void begin_recording(uint64_t limit) {
  {
    const std::lock_guard guard(session->mutex);
    if (session->active)
      throw Error(ErrorKind::runtime,
                  "[profile] a profile is being recorded already: end it before the next one begins, or keep the "
                  "outer one only");
    session->active = true, session->limit = limit;
    session->logs.clear();
    ++generation;
  }
  try {
    for (Device* device : devices()) {
      if (!measures_time(*device) || device->state != DeviceState::usable) continue;
      device->default_stream->record()->wait();
      std::shared_ptr<const Reference> reference = find_reference(*device);
      const std::lock_guard guard(session->mutex);
      session->references[device->index] = std::move(reference);
    }
  } catch (...) {
    end_recording();
    throw;
  }
  {
    const std::lock_guard guard(session->mutex);
    session->begin = host_clock();
  }
  debug_checks |= recorded;
  for (Device* device : devices()) device->pool->close_caches();  // every buffer passes record_memory()
}

void record_device(Device& device) {
  if (!recording() || !measures_time(device)) return;
  std::shared_ptr<const Reference> reference = find_reference(device);
  const std::lock_guard guard(session->mutex);
  if (session->active) session->references[device.index] = std::move(reference);
}

void await_recording() {
  for (Device* device : devices()) {
    if (device->state != DeviceState::usable) continue;
    for (Stream* stream : streams_of(*device))
      if (!stream->has_passed(stream->position())) stream->record()->wait();
  }
}

bool await_recording(std::chrono::steady_clock::time_point until) {
  bool all = true;
  for (Device* device : devices()) {
    if (device->state != DeviceState::usable) continue;
    for (Stream* stream : streams_of(*device)) all = stream->drain(until) && all;
  }
  return all;
}

Recording end_recording() {
  Recording result;
  std::vector<std::shared_ptr<ThreadLog>> logs;
  std::shared_ptr<const Reference> references[kMaxDevices];
  {
    const std::lock_guard guard(session->mutex);
    if (!session->active) return result;
    debug_checks &= uint8_t(~recorded);
    session->active = false;
    logs.swap(session->logs);
    std::swap(references, session->references);
    result.begin = session->begin;
  }
  for (const auto& log : logs) {
    std::deque<Record> records;
    std::deque<Pending> pending;
    {
      const std::lock_guard guard(log->mutex);
      log->closed = true;
      records.swap(log->records), pending.swap(log->pending);
    }
    for (const Pending& p : pending) {
      Record& record = records[p.record];
      if (p.end->passed()) place(record, p);
      else record.unfinished = true;
    }
    result.threads.push_back({log->thread, log->dropped, {records.begin(), records.end()}});
  }
  for (Device* device : devices()) {
    const auto& reference = references[device->index];
    result.devices.push_back({device, clock_of(*device), reference ? reference->uncertainty : 0});
  }
  result.end = host_clock();
  return result;
}

void recording_after_fork() {
  debug_checks &= uint8_t(~recorded);
  auto* fresh = new Session;  // another thread of the parent may have held the mutex of the old one
  fresh->of_parent = session;
  session = fresh;
  ++generation;
}

// ---- hooks ------------------------------------------------------------------------------------------------------

void record_memory(Device& device, int64_t bytes, int64_t in_use) {
  ThreadLog* log = own_log();
  if (!log) return;
  const uint64_t now = host_clock();
  add(*log, {.activity = Activity::memory,
             .name = bytes > 0 ? "allocate" : "free",
             .device = &device,
             .begin = now,
             .end = now,
             .enqueued = now,
             .bytes = bytes,
             .value = uint64_t(in_use)});
}

void record_traced(const std::string& plugin, uint64_t correlation_id, const std::string& name, uint64_t begin,
                   uint64_t end) {
  ThreadLog* log = own_log();
  if (!log) return;
  add(*log, {.activity = Activity::traced,
             .device_time = true,
             .name = kept_name(name),
             .detail = plugin.c_str(),
             .device = running ? &running_on->device : nullptr,
             .stream = running_on,
             .begin = begin,
             .end = std::max(begin, end),
             .enqueued = host_clock(),
             .value = correlation_id});
}

const char* lasting(const std::string& text) {
  static auto& texts = *new std::unordered_set<std::string>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard guard(mutex);
  return texts.insert(text).first->c_str();
}

HostSpan::~HostSpan() {
  if (ThreadLog* log = own_log())
    add(*log, {.activity = activity_,
               .name = name_,
               .detail = detail_,
               .begin = begin_,
               .end = host_clock(),
               .enqueued = begin_});
}

DeviceSpan::DeviceSpan(Activity activity, const char* name, const char* detail, Stream& stream,
                       uint64_t correlation_id, int64_t bytes)
    : stream_(stream), around_(running) {
  record_ = {.activity = activity,
             .name = name,
             .detail = detail,
             .device = &stream.device,
             .stream = &stream,
             .bytes = bytes,
             .value = correlation_id};
  running = this, running_on = &stream;
  if (measures_time(stream.device)) {
    if (ThreadLog* log = own_log()) read_pending(*log);
    try {
      begin_ = stream.record_timing(true);
    } catch (const Error&) {  // the work itself will report what is wrong with the device
    }
  }
  record_.begin = record_.enqueued = host_clock();
}

DeviceSpan::~DeviceSpan() {
  record_.end = host_clock();
  running = around_, running_on = around_ ? &around_->stream_ : nullptr;
  ThreadLog* log = own_log();
  if (!log) return;
  RecordedEventPtr end;
  std::shared_ptr<const Reference> reference;
  if (begin_) {
    {
      const std::lock_guard guard(session->mutex);
      reference = session->references[stream_.device.index];
    }
    try {
      if (reference) end = stream_.record_timing(false);
    } catch (const Error&) {
    }
  }
  add(*log, record_, std::move(begin_), std::move(end), std::move(reference));
}

const char* copy_name(const Device& device, const DLTensor& dst, const DLTensor& src) {
  constexpr int32_t host = 1;  // kDLCPU
  const auto side = [&](const DLTensor& t) -> std::string {
    if (t.device.device_type == host) return "host";
    for (const Device* other : device.backend->devices)
      if (other->dl.device_id == t.device.device_id) return other->name;
    return device.name;
  };
  // Where the device's memory is the host's, the two sides look alike.
  if (device.dl.device_type == host) return kept_name("copy on " + device.name);
  return kept_name("copy " + side(src) + " to " + side(dst));
}
}  // namespace dovetail
