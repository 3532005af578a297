// Faults outside of kernels: launches, streams, events, copies, memory, errors, properties.
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cstdio>

#include "broken.hpp"

namespace {
// ---- launches: the queue of a kernel ----------------------------------------------------------------------------

dvt_status launch_at_once(dvt_device* d, const dvt_call* c, Work work) {
  dvt_call now = *c;
  now.stream = nullptr;
  return good.launch(d, &now, work);
}

dvt_status launch_rounding_upward(dvt_device* d, const dvt_call* c, Work work) {
  std::fesetround(FE_UPWARD);
  return good.launch(d, c, work);
}

dvt_status launch_on_any_queue(dvt_device* d, const dvt_call* c, Work work) {
  static dvt_stream* queues[2];
  static std::atomic<unsigned> next{0};
  if (!c->stream) return good.launch(d, c, work);
  dvt_stream*& queue = queues[next++ % 2];
  if (!queue)
    if (dvt_status s = good.streams.create(d, 0, &queue)) return s;
  dvt_call elsewhere = *c;
  elsewhere.stream = queue;
  return good.launch(d, &elsewhere, work);
}

// ---- streams and events -----------------------------------------------------------------------------------------

dvt_status no_wait(dvt_stream*, dvt_event*) { return DVT_OK; }
dvt_status wait_on_host(dvt_stream*, dvt_event* e) { return good.streams.ev_sync(e); }
dvt_status no_event_sync(dvt_event*) { return DVT_OK; }
dvt_status no_stream_sync(dvt_stream*) { return DVT_OK; }
dvt_status always_done(dvt_event*, uint32_t* done) { return *done = 1, DVT_OK; }

dvt_status never_done(dvt_event* e, uint32_t* done) {
  const dvt_status status = good.streams.ev_query(e, done);
  return *done = 0, status;
}

dvt_status elapsed_in_microseconds(dvt_event* from, dvt_event* to, uint64_t* ns) {
  const dvt_status status = good.streams.ev_elapsed_ns(from, to, ns);
  return *ns /= 1000, status;
}

std::atomic<int> streams_left{8};
dvt_status create_a_few(dvt_device* d, int32_t priority, dvt_stream** out) {
  if (--streams_left < 0) return DVT_FAIL(DVT_INTERNAL, "all 8 hardware queues are in use");
  return good.streams.create(d, priority, out);
}

// ---- copies -----------------------------------------------------------------------------------------------------

constexpr bool on_host(const DLTensor* t) { return t->device.device_type == 1 /* kDLCPU */; }

dvt_status copy_whole_words(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  DLTensor to = *dst, from = *src;
  int64_t bytes = int64_t(dvt::bytes(src) / 4 * 4), step = 1;
  to.ndim = from.ndim = 1, to.shape = from.shape = &bytes, to.strides = from.strides = &step;
  to.dtype = from.dtype = dvt::u8;
  return bytes ? good.backend.copy(d, &to, &from, s) : DVT_OK;
}

dvt_status copy_overtakes(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream*) {
  return good.backend.copy(d, dst, src, nullptr);
}

// Copies late, like a kernel that still runs when its stream counts as idle.
void copy_bytes(const dvt_call* c) {
  usleep(2000);
  std::memcpy(c->out[0]->data, c->in[0]->data, size_t(c->in[0]->shape[0]));
}
dvt_status copy_later(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  DLTensor to = *dst, from = *src;
  int64_t bytes = int64_t(dvt::bytes(src)), step = 1;
  to.ndim = from.ndim = 1, to.shape = from.shape = &bytes, to.strides = from.strides = &step;
  to.dtype = from.dtype = dvt::u8;
  const DLTensor *in = &from, *out = &to;
  dvt_call c{};
  c.struct_size = sizeof c, c.n_in = c.n_out = 1, c.in = &in, c.out = &out, c.stream = s;
  return bytes ? good.launch(d, &c, copy_bytes) : DVT_OK;
}
dvt_status copy_reads_late(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  return (on_host(src) ? copy_later : good.backend.copy)(d, dst, src, s);
}
dvt_status copy_writes_late(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  return (on_host(dst) ? copy_later : good.backend.copy)(d, dst, src, s);
}

// ---- memory -----------------------------------------------------------------------------------------------------

// ---- capture: copies on a stream that records read what is there at the capture
// ------------------------------------

std::atomic<dvt_stream*> capturing{nullptr};

const dvt_capture& good_capture() {
  return *static_cast<const dvt_capture*>(good.backend.extension("dovetail.capture", DVT_X_CAPTURE));
}
dvt_status begin_capture(dvt_stream* s) {
  capturing = s;
  return good_capture().begin(s);
}
dvt_status end_capture(dvt_stream* s, dvt_graph** out) {
  capturing = nullptr;
  return good_capture().end(s, out);
}
const void* keeps_captured(const char* name, uint32_t version) {
  static const dvt_capture captures = [] {
    dvt_capture c = good_capture();
    c.begin = begin_capture, c.end = end_capture;
    return c;
  }();
  return std::strcmp(name, "dovetail.capture") ? good.backend.extension(name, version) : &captures;
}
dvt_status copy_keeps_captured(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  if (!s || s != capturing) return good.backend.copy(d, dst, src, s);
  DLTensor kept = *src;  // never freed
  kept.byte_offset = 0;
  if (dvt_status status = good.backend.alloc(d, dvt::bytes(src), DVT_MEM_DEVICE, nullptr, &kept.data))
    return status;
  if (dvt_status status = good.backend.copy(d, &kept, src, nullptr)) return status;
  return good.backend.copy(d, dst, &kept, s);
}

dvt_status alloc_once_full(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream* s, void** out) {
  static std::atomic<bool> full{false};
  if (full) return DVT_OOM;
  const dvt_status status = good.backend.alloc(d, size, kind, s, out);
  if (status == DVT_OOM) full = true;
  return status;
}

dvt_status alloc_anything(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream* s, void** out) {
  const dvt_status status = good.backend.alloc(d, size, kind, s, out);
  return status == DVT_OOM ? good.backend.alloc(d, 4096, kind, s, out) : status;
}

dvt_status alloc_too_little(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream* s, void** out) {
  return good.backend.alloc(d, size > 4096 && kind == DVT_MEM_DEVICE ? size - 4096 : size, kind, s, out);
}

constexpr int off = 64;  // 256 are declared
dvt_status alloc_unaligned(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream* s, void** out) {
  const dvt_status status = good.backend.alloc(d, size + 256, kind, s, out);
  if (status == DVT_OK) *out = static_cast<char*>(*out) + off;
  return status;
}
void dealloc_unaligned(dvt_device* d, void* data, uint32_t kind, dvt_stream* s) {
  good.backend.dealloc(d, static_cast<char*>(data) - off, kind, s);
}

void dealloc_nothing(dvt_device*, void*, uint32_t, dvt_stream*) {}

// ---- errors: index faults come through ev_sync and ev_query -----------------------------------------------

dvt_status without_message(const dvt_host*, dvt_status code, uint64_t, const char*, int, const char*) {
  return code;
}
void says_nothing(Device&) {
  static dvt_host mute = *dvt::host;
  mute.fail = without_message;
  dvt::host = &mute;
}

dvt_status unless_index(dvt_status s) { return s == DVT_INDEX ? DVT_OK : s; }
void loses_errors(Device& d) {
  d.streams.ev_sync = [](dvt_event* e) { return unless_index(good.streams.ev_sync(e)); };
  d.streams.ev_query = [](dvt_event* e, uint32_t* done) { return unless_index(good.streams.ev_query(e, done)); };
}

// A fault must be reported once.
dvt_status again(dvt_status status) {
  static std::atomic<bool> reported{false};
  if (status == DVT_INDEX) reported = true;
  return status == DVT_OK && reported ? DVT_FAIL(DVT_INDEX, "an index is out of range") : status;
}
void reports_again(Device& d) {
  d.streams.ev_sync = [](dvt_event* e) { return again(good.streams.ev_sync(e)); };
  d.streams.ev_query = [](dvt_event* e, uint32_t* done) { return again(good.streams.ev_query(e, done)); };
}

// ---- properties -------------------------------------------------------------------------------------------------

dvt_status props_without_name(dvt_device* d, dvt_props* p) {
  const dvt_status status = good.backend.device_props(d, p);
  return p->name[0] = 0, status;
}
dvt_status props_host_mapped(dvt_device* d, dvt_props* p) {
  const dvt_status status = good.backend.device_props(d, p);
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED);
  return status;
}
dvt_status more_free_than_there_is(dvt_device* d, uint64_t* free, uint64_t* total) {
  const dvt_status status = good.backend.mem_info(d, free, total);
  return *free = 2 * *total, status;
}
}  // namespace

Faults device_faults() {
  return {
      {"runs_at_once", [](Device& d) { d.launch = launch_at_once; }},
      {"runs_on_any_queue", [](Device& d) { d.launch = launch_on_any_queue; }},
      {"stream_waits_for_no_event", [](Device& d) { d.streams.ev_wait = no_wait; }},
      {"event_wait_blocks_the_host", [](Device& d) { d.streams.ev_wait = wait_on_host; }},
      {"event_sync_returns_at_once", [](Device& d) { d.streams.ev_sync = no_event_sync; }},
      {"stream_sync_returns_at_once", [](Device& d) { d.streams.sync = no_stream_sync; }},
      {"event_is_always_done", [](Device& d) { d.streams.ev_query = always_done; }},
      {"event_is_never_done", [](Device& d) { d.streams.ev_query = never_done; }},
      {"elapsed_in_microseconds", [](Device& d) { d.streams.ev_elapsed_ns = elapsed_in_microseconds; }},
      {"eight_streams", [](Device& d) { d.streams.create = create_a_few; }},
      {"replays_old_values",
       [](Device& d) { d.backend.extension = keeps_captured, d.backend.copy = copy_keeps_captured; }},
      {"copies_whole_words", [](Device& d) { d.backend.copy = copy_whole_words; }},
      {"copy_overtakes", [](Device& d) { d.backend.copy = copy_overtakes; }},
      {"copy_reads_late", [](Device& d) { d.backend.copy = copy_reads_late; }},
      {"copy_writes_late", [](Device& d) { d.backend.copy = copy_writes_late; }},
      {"memory_never_recovers", [](Device& d) { d.backend.alloc = alloc_once_full; }},
      {"memory_without_end", [](Device& d) { d.backend.alloc = alloc_anything; }},
      {"memory_too_small", [](Device& d) { d.backend.alloc = alloc_too_little; }},
      {"memory_unaligned",
       [](Device& d) { d.backend.alloc = alloc_unaligned, d.backend.dealloc = dealloc_unaligned; }},
      {"memory_leaks", [](Device& d) { d.backend.dealloc = dealloc_nothing; }},
      {"says_nothing", says_nothing},
      {"loses_errors", loses_errors},
      {"reports_again", reports_again},
      {"rounds_upward", [](Device& d) { d.launch = launch_rounding_upward; }},
      {"no_name", [](Device& d) { d.backend.device_props = props_without_name; }},
      {"not_host_mapped", [](Device& d) { d.backend.device_props = props_host_mapped; }},
      {"more_free_than_total", [](Device& d) { d.backend.mem_info = more_free_than_there_is; }},
  };
}
