// Streams are in-order queues; an event is where a queue stood when it was recorded.
#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;

// A queue measures every command where the device cannot stamp the time by a command of its own.
sycl::property_list properties_of(const sycl::device& device, int32_t priority) {
  namespace queue = sycl::property::queue;
  namespace order = sycl::ext::oneapi::property::queue;
  const bool stamps = device.has(sycl::aspect::ext_oneapi_queue_profiling_tag);
  if (!stamps) return {queue::in_order(), queue::enable_profiling()};
  if (priority < 0) return {queue::in_order(), order::priority_high()};
  if (priority > 0) return {queue::in_order(), order::priority_low()};
  return {queue::in_order()};
}

void keep(dvt_stream& s, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const sycl::exception& e) {
    if (gpu::is_consequence(e)) return;
    const dvt_status status = gpu::status_of(e);
    if (status == DVT_DEVICE_LOST) s.device.lost = true;
    s.faults.keep(status, e.what());
  } catch (const std::exception& e) {
    s.faults.keep(DVT_INTERNAL, e.what());
  }
}
}  // namespace

dvt_stream::dvt_stream(dvt_device& d, int32_t order)
    : device(d), priority(order), faults(d.context, d.device), queue(new_queue()) {
  d.streams.add(this);
}

dvt_stream::~dvt_stream() { device.streams.remove(this); }

sycl::queue dvt_stream::new_queue() {
  const auto handler = [this](const sycl::exception_list& errors) {
    for (const std::exception_ptr& error : errors) keep(*this, error);
  };
  return {device.context, device.device, handler, properties_of(device.device, priority)};
}

void dvt_stream::renew() {
  if (const auto recording = capture) recording->end();
  queue.throw_asynchronous();  // else SYCL gives what is left to the next queue
  onednn.emplace();            // it holds the queue
  queue = new_queue();
  ++renewed;
  mark_.reset();
  faults.restart(queue);
}

// On a CPU oneDNN's work is host functions. For every command that it queues, SYCL visits by recursion all commands
// that wait behind such a function: four milliseconds for two thousand of them.
void dvt_stream::limit_backlog() {
  constexpr uint32_t calls_between_marks = 256;
  if (!device.is_cpu || capture || ++calls_ % calls_between_marks) return;
  try {
    if (mark_) mark_->wait();
    mark_ = queue.ext_oneapi_submit_barrier();
  } catch (const sycl::exception&) {
    mark_.reset();  // the next wait reports the failure
  }
}

namespace gpu {
void Streams::add(dvt_stream* s) {
  const std::lock_guard guard(mutex_);
  all_.insert(s);
}

void Streams::remove(dvt_stream* s) {
  const std::lock_guard guard(mutex_);
  all_.erase(s);
}

void Streams::gather_errors() {
  const std::lock_guard guard(mutex_);
  for (dvt_stream* s : all_) s->queue.throw_asynchronous();
}

void Streams::renew() {
  const std::lock_guard guard(mutex_);
  for (dvt_stream* s : all_) s->renew(), s->faults.forget_error();
}

bool Event::passed() const {
  try {
    return handle.get_info<sycl::info::event::command_execution_status>() ==
           sycl::info::event_command_status::complete;
  } catch (const sycl::exception& error) {
    if (!is_consequence(error)) throw;
    return true;  // it will never run
  }
}

void Event::wait() const {
  if (!passed()) sycl::event(handle).wait();
}

Event end_of(dvt_stream& s) {
  if (!s.device.lost) try {
      return {s.queue.ext_oneapi_submit_barrier()};
    } catch (...) {
      (void)report_exception(&s.device);
      if (!s.device.lost) throw;
    }
  return {};
}

namespace {
// Reports errors after wait(), also if that throws: SYCL's error for work behind a failed command is not the cause.
template <class Wait>
dvt_status report_after(dvt_stream& s, Wait&& wait) {
  return guarded(&s.device, [&] {
    try {
      wait();
      s.queue.throw_asynchronous();
    } catch (const sycl::exception& error) {
      s.queue.throw_asynchronous();
      s.failed = true;
      if (!s.faults.has_error() && !is_consequence(error)) throw;
    }
    if (s.faults.has_error()) s.failed = true;
    return s.faults.report(s.queue);
  });
}
}  // namespace

dvt_status wait_for(dvt_stream& s) {
  return report_after(s, [&] {
    s.mend();
    s.faults.publish(s.queue);
    s.queue.wait();
  });
}

dvt_status stream_create(dvt_device* d, int32_t priority, dvt_stream** out) {
  return guarded(d, [&] {
    *out = new dvt_stream(*d, priority);
    return DVT_OK;
  });
}

// Its queued work may still write faults: it goes when that is done.
void stream_destroy(dvt_stream* s) {
  dvt_device& device = s->device;
  try {
    if (const auto recording = s->capture) recording->end();
    device.deferred.after(end_of(*s), [s] { delete s; });
    device.deferred.sweep();
  } catch (...) {
    (void)report_exception(&device);
  }
}

dvt_status stream_sync(dvt_stream* s) {
  if (dvt_status status = refuse_in_capture(*s, "a wait for the stream")) return status;
  return wait_for(*s);
}

dvt_status event_create(dvt_device* d, uint32_t timing, dvt_event** out) {
  return guarded(d, [&] {
    *out = new dvt_event{.timing = timing != 0, .mutex = {}, .record = {}, .capture = {}};
    return DVT_OK;
  });
}
void event_destroy(dvt_event* e) { delete e; }

dvt_status event_record(dvt_event* e, dvt_stream* s) {
  return enqueue(&s->device, s, [&](dvt_stream&) {
    if (!s->capture) s->faults.publish(s->queue);
    sycl::event record =
        e->timing && !s->capture ? syclex::submit_profiling_tag(s->queue) : s->queue.ext_oneapi_submit_barrier();
    const std::lock_guard guard(e->mutex);
    e->record = std::move(record), e->stream = s, e->renewed = s->renewed, e->capture = s->capture;
    return DVT_OK;
  });
}

namespace {
struct Record {
  std::optional<sycl::event> event;  // nothing: done
  dvt_stream* stream;                // nullptr: never recorded
  std::shared_ptr<Capture> capture;
};
Record newest(dvt_event* e) {
  const std::lock_guard guard(e->mutex);
  // SYCL would never call an event done that stands behind work that failed.
  if (e->stream && (e->stream->failed || e->stream->renewed != e->renewed)) e->record.reset();
  return {e->record, e->stream, e->capture};
}

// A stream that waits for an event of a capture becomes part of it.
dvt_status enter_capture(dvt_stream* s, const Record& record) {
  if (s->capture == record.capture) return DVT_OK;
  if (s->capture) return refuse_in_capture(*s, "a wait for an event from elsewhere");
  if (record.capture != record.stream->capture) return refuse_captured(record.capture != nullptr);  // it has ended
  s->capture = record.capture;
  s->capture->add(*s);
  return DVT_OK;
}

}  // namespace

dvt_status event_wait(dvt_stream* s, dvt_event* e) {
  return enqueue(&s->device, s, [&](dvt_stream&) -> dvt_status {
    const Record record = newest(e);
    if (!record.event) return DVT_OK;
    if (dvt_status status = enter_capture(s, record)) return status;
    // Not ext_oneapi_submit_barrier({event}): that blocks the caller while a host function is in front of the
    // event.
    syclex::submit(s->queue, [&](sycl::handler& h) {
      h.depends_on(*record.event);
      h.ext_oneapi_barrier();
    });
    return DVT_OK;
  });
}

dvt_status event_sync(dvt_event* e) {
  Record record = newest(e);
  if (!record.stream) return DVT_OK;
  if (dvt_status status = refuse_captured(record.capture != nullptr)) return status;
  return report_after(*record.stream, [&] {
    if (record.event) record.event->wait();
  });
}

dvt_status event_query(dvt_event* e, uint32_t* done) {
  const Record record = newest(e);
  *done = 1;
  if (!record.stream) return DVT_OK;
  if (dvt_status status = refuse_captured(record.capture != nullptr)) return status;
  const dvt_status status = guarded(&record.stream->device, [&] {
    *done = !record.event || Event{*record.event}.passed();
    if (!*done) {  // work behind one that failed never completes
      record.stream->queue.throw_asynchronous();
      *done = record.stream->faults.has_error();
    }
    return DVT_OK;
  });
  return status || !*done ? status : report_after(*record.stream, [] {});
}

dvt_status event_elapsed(dvt_event* from, dvt_event* to, uint64_t* ns) {
  const Record first = newest(from), second = newest(to);
  if (dvt_status status = refuse_captured(first.capture != nullptr)) return status;
  if (dvt_status status = refuse_captured(second.capture != nullptr)) return status;
  if (!from->timing || !to->timing || !first.event || !second.event) return report_no_time();
  return guarded(&first.stream->device, [&] {
    using end = sycl::info::event_profiling::command_end;
    const uint64_t a = first.event->get_profiling_info<end>(), b = second.event->get_profiling_info<end>();
    *ns = b > a ? b - a : 0;
    return DVT_OK;
  });
}

dvt_status host_fn(dvt_stream* s, void (*fn)(void*), void* ctx) {
  return enqueue(&s->device, s, [&](dvt_stream&) -> dvt_status {
    if (dvt_status status = refuse_in_capture(*s, "a function of the host")) return status;
    syclex::host_task(s->queue, [=] { fn(ctx); });
    return DVT_OK;
  });
}
constinit const dvt_streams streams = stream_functions(0);
}  // namespace gpu
