// The functions of abi.h, each implemented with the driver's.
#include <cstdarg>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "compile.hpp"
#include "driver.hpp"
#include "kernels.hpp"
#include "name.hpp"

struct dvt_device {
  driver::Chip chip;
  driver::Queue queue{chip, UINT32_MAX};  // for calls without a stream
  std::atomic<uint32_t> streams{0};
  explicit dvt_device(uint32_t index) : chip(index) {}
};
struct dvt_stream {
  dvt_device* device;
  driver::Queue queue{device->chip, device->streams++};
  std::shared_ptr<driver::Recording> capture{};  // that has begun here
};
struct dvt_event {
  bool timing;
  driver::Queue* queue = nullptr;  // nullptr: never recorded
  uint64_t place = 0;
  std::shared_ptr<std::atomic<int64_t>> ns{};    // the time at which the queue passed the event
  std::shared_ptr<driver::Recording> capture{};  // not nullptr: recorded in it
};
struct dvt_graph {
  dvt_device* device;
  std::shared_ptr<const driver::Recording> recording;  // queued replays hold it, too
};

namespace {
constexpr uint32_t max_devices = 8;
dvt_device* devices[max_devices];

// ---- errors -----------------------------------------------------------------------------------------------------

dvt_status report(const driver::Fault& fault) {
  if (fault.error == driver::Error::none) return DVT_OK;
  const dvt_status status = fault.error == driver::Error::lost ? DVT_DEVICE_LOST : DVT_INDEX;
  return DVT_FAIL_LATE(status, fault.call, "%s", fault.text.c_str());
}
dvt_status check(dvt_device* d) { return d->chip.is_lost() ? report(d->chip.loss()) : DVT_OK; }

driver::Queue& queue_of(dvt_device* d, dvt_stream* s) { return s ? s->queue : d->queue; }
dvt_status finish(driver::Queue& queue) {
  queue.wait(queue.tail());
  return report(queue.take_fault());
}

dvt_status refuse_in_capture(driver::Queue& queue, const char* what) {
  if (!queue.recording()) return DVT_OK;
  return DVT_FAIL(
      DVT_INVALID,
      "%s cannot be captured: expected kernels, copies without pageable memory, and events of the capture", what);
}
// An event of a capture has no state of its own.
dvt_status refuse_captured(const dvt_event* e) {
  if (!e->capture) return DVT_OK;
  return DVT_FAIL(DVT_INVALID, "this event was recorded in a capture: expected a wait by a stream of that capture");
}

// ---- devices ----------------------------------------------------------------------------------------------------

dvt_status device_count(uint32_t* n) {
  const driver::Settings& s = driver::settings();
  *n = s.error.empty() ? s.chips : 0;
  return s.error.empty() ? DVT_OK : DVT_FAIL(DVT_INVALID, "%s", s.error.c_str());
}

dvt_status device_open(uint32_t index, dvt_device** out) {
  uint32_t n;
  if (dvt_status s = device_count(&n)) return s;
  if (index >= n) return DVT_FAIL(DVT_INVALID, "there are %u devices, got index %u", n, index);
  try {
    *out = devices[index] = new dvt_device(index);
  } catch (const std::bad_alloc&) {
    return DVT_FAIL(DVT_OOM, "the host cannot map %llu bytes twice", (unsigned long long)driver::settings().memory);
  }
  return DVT_OK;
}

void device_close(dvt_device* d) {
  devices[d->chip.index] = nullptr;
  delete d;
}

dvt_status device_props(dvt_device* d, dvt_props* p) {
  std::snprintf(p->name, sizeof p->name, "Simulated accelerator");
  std::snprintf(p->arch, sizeof p->arch, "threads of the host");
  DVT_PUT(p, dvt_props, kind, DVT_KIND_OTHER);
  DVT_PUT(p, dvt_props, caps, DVT_CAP_P2P);
  DVT_PUT(p, dvt_props, dl_device_type, 12 /* kDLExtDev */);
  DVT_PUT(p, dvt_props, dl_device_id, int32_t(d->chip.index));
  DVT_PUT(p, dvt_props, mem_total, d->chip.memory.size());
  DVT_PUT(p, dvt_props, alloc_align, driver::Memory::alignment);
  DVT_PUT(p, dvt_props, max_streams, 32);
  DVT_PUT(p, dvt_props, peak_bytes_per_s, driver::settings().bandwidth * 1e9);
  return DVT_OK;
}

dvt_status device_reset(dvt_device* d) {
  d->chip.reset();
  return DVT_OK;
}

// ---- memory -----------------------------------------------------------------------------------------------------

dvt_status mem_info(dvt_device* d, uint64_t* free_bytes, uint64_t* total) {
  *free_bytes = d->chip.memory.free(), *total = d->chip.memory.size();
  return DVT_OK;
}

dvt_status alloc(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream*, void** out) {
  if (dvt_status s = check(d)) return s;
  if (kind == DVT_MEM_SHARED) return DVT_UNSUPPORTED;
  *out = kind == DVT_MEM_PINNED ? driver::allocate_pinned(size) : d->chip.allocate(size);
  return *out ? DVT_OK : DVT_OOM;
}

// Frees the memory after the work that is now on the stream.
void dealloc(dvt_device* d, void* data, uint32_t kind, dvt_stream* s) {
  const auto release = [=] {
    kind == DVT_MEM_PINNED ? driver::release_pinned(data) : d->chip.memory.release(data);
  };
  s ? s->queue.then(release) : release();
}

// The address at which a worker thread of any device can access the tensor's memory.
char* locate(const DLTensor* t) {
  for (dvt_device* d : devices)
    if (d && t->device.device_type != 1 /* kDLCPU */)
      if (char* at = d->chip.memory.at(dvt::data<char>(t))) return at;
  return dvt::data<char>(t);
}

dvt_status copy(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  if (dvt_status status = check(d)) return status;
  driver::Queue& queue = queue_of(d, s);
  const uint64_t bytes = dvt::bytes(src);
  char* to = locate(dst);
  const char* from = locate(src);
  const auto host_owned = [](const DLTensor* t, const char* at) {
    return t->device.device_type == 1 /* kDLCPU */ && !driver::is_pinned(at);
  };
  if (host_owned(src, from) || host_owned(dst, to))
    if (dvt_status status = refuse_in_capture(queue, "a copy of pageable memory")) return status;
  if (s && host_owned(src, from)) {  // the host may overwrite the source as soon as this function returns
    std::shared_ptr<char[]> staged(new char[bytes]);
    std::memcpy(staged.get(), from, bytes);
    queue.copy(to, staged.get(), bytes);
    queue.then([staged] {});
    return DVT_OK;
  }
  queue.copy(to, from, bytes);
  if (!s) return finish(queue);
  if (host_owned(dst, to)) queue.wait(queue.tail());
  return DVT_OK;
}

// ---- streams and events -----------------------------------------------------------------------------------------

dvt_status stream_create(dvt_device* d, int32_t, dvt_stream** out) {
  if (dvt_status s = check(d)) return s;
  *out = new dvt_stream{d};
  return DVT_OK;
}
void stream_destroy(dvt_stream* s) {
  if (s->capture) s->capture->end();
  delete s;
}
dvt_status stream_sync(dvt_stream* s) {
  if (dvt_status status = refuse_in_capture(s->queue, "a wait of the host")) return status;
  return finish(s->queue);
}

dvt_status event_create(dvt_device*, uint32_t timing, dvt_event** out) {
  *out = new dvt_event{timing != 0};
  return DVT_OK;
}
void event_destroy(dvt_event* e) { delete e; }

dvt_status event_record(dvt_event* e, dvt_stream* s) {
  if (dvt_status status = check(s->device)) return status;
  e->capture = s->queue.recording();
  if (e->capture) return e->ns = nullptr, DVT_OK;
  if (e->timing) {
    e->ns = std::make_shared<std::atomic<int64_t>>(0);
    s->queue.then([ns = e->ns] { *ns = driver::Duration(driver::Clock::now().time_since_epoch()).count(); });
  }
  e->queue = &s->queue, e->place = s->queue.tail();
  return DVT_OK;
}

// A stream that waits for an event of a capture joins it. The recording has one order, which keeps that of all its
// streams.
dvt_status join_capture(dvt_stream* s, dvt_event* e) {
  const auto own = s->queue.recording();
  if (own == e->capture) return DVT_OK;
  if (own || e->capture->has_ended()) return refuse_captured(e);
  s->queue.record(e->capture);
  return DVT_OK;
}

dvt_status event_wait(dvt_stream* s, dvt_event* e) {
  if (dvt_status status = check(s->device)) return status;
  if (e->capture) return join_capture(s, e);
  if (!e->queue) return DVT_OK;
  if (dvt_status status = refuse_in_capture(s->queue, "a wait for other work")) return status;
  s->queue.after(*e->queue, e->place);
  return DVT_OK;
}

dvt_status event_sync(dvt_event* e) {
  if (dvt_status status = refuse_captured(e)) return status;
  if (!e->queue) return DVT_OK;
  e->queue->wait(e->place);
  return report(e->queue->take_fault());
}

dvt_status event_query(dvt_event* e, uint32_t* done) {
  if (dvt_status status = refuse_captured(e)) return status;
  *done = !e->queue || e->queue->passed(e->place);
  return e->queue ? report(e->queue->take_fault()) : DVT_OK;
}

dvt_status event_elapsed(dvt_event* from, dvt_event* to, uint64_t* ns) {
  if (!from->ns || !to->ns)
    return DVT_FAIL(DVT_INVALID, "no time between events: expected two recorded with timing");
  const int64_t a = *from->ns, b = *to->ns;
  *ns = b > a ? uint64_t(b - a) : 0;
  return DVT_OK;
}

dvt_status host_fn(dvt_stream* s, void (*fn)(void*), void* ctx) {
  if (dvt_status status = check(s->device)) return status;
  if (dvt_status status = refuse_in_capture(s->queue, "a function of the host")) return status;
  s->queue.then([=] { fn(ctx); });
  return DVT_OK;
}

// ---- capture ----------------------------------------------------------------------------------------------------

dvt_status capture_begin(dvt_stream* s) {
  if (dvt_status status = check(s->device)) return status;
  if (dvt_status status = refuse_in_capture(s->queue, "the begin of another capture")) return status;
  s->capture = std::make_shared<driver::Recording>();
  s->queue.record(s->capture);
  return DVT_OK;
}

dvt_status capture_end(dvt_stream* s, dvt_graph** out) {
  if (!s->capture) return DVT_FAIL(DVT_INVALID, "no capture has begun on this stream: expected begin before end");
  const auto recording = std::exchange(s->capture, nullptr);
  recording->end();
  if (out) *out = new dvt_graph{s->device, recording};
  return DVT_OK;
}

dvt_status capture_replay(dvt_graph* g, dvt_stream* s) {
  if (dvt_status status = check(g->device)) return status;
  driver::Queue& queue = queue_of(g->device, s);
  if (dvt_status status = refuse_in_capture(queue, "a replay")) return status;
  queue.replay(g->recording);
  return s ? DVT_OK : finish(queue);
}

void capture_destroy(dvt_graph* g) { delete g; }

const void* extension(const char* name, uint32_t version) {
  static const dvt_capture capture = {sizeof capture, 0, capture_begin, capture_end, capture_replay,
                                      capture_destroy};
  if (!std::strcmp(name, "dovetail.capture") && version == DVT_X_CAPTURE) return &capture;
  if (const void* found = compiler_extension(name, version)) return found;  // compile.cpp
  return nullptr;
}
}  // namespace

// ---- kernels ----------------------------------------------------------------------------------------------------

dvt_status launch(dvt_device* d, const dvt_call* c, Work work) {
  if (dvt_status status = check(d)) return status;
  // The call is invalid after this function returns: the queue gets a copy.
  auto call = std::make_shared<dvt::CallCopy>(c);
  call->map_addresses([d](void* data) -> void* { return d->chip.memory.at(data); });
  driver::Queue& queue = queue_of(d, c->stream);
  queue.kernel(c->correlation_id, [call, work = std::move(work)] { work(call->get()); });
  return c->stream ? DVT_OK : finish(queue);
}

void bad_index(int64_t index, int64_t axis, int64_t size) {
  driver::raise(driver::Error::bad_index, "index " + std::to_string(index) + " is out of range: axis " +
                                              std::to_string(axis) + " has " + std::to_string(size) + " elements");
}

// ---- the table --------------------------------------------------------------------------------------------------

#ifndef BACKEND_VERSION
#define BACKEND_VERSION "0"
#endif

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = dvt::accept(host)) return s;
  static const dvt_streams streams = {
      sizeof streams, DVT_S_CROSS_DEVICE, stream_create, stream_destroy, stream_sync,
      event_create,   event_destroy,      event_record,  event_wait,     event_sync,
      event_query,    event_elapsed,      nullptr,       nullptr,        host_fn};
  static const dvt_backend backend = [] {
    static dvt::KernelTable& table = *new dvt::KernelTable(DVT_K_CAPTURE_SAFE);  // never destroyed
    add_elementwise(table), add_copies(table), add_indexing(table), add_reductions(table), add_matmul(table);
    dvt_backend b{};
    b.struct_size = sizeof b;
    b.abi_major = DVT_ABI_MAJOR, b.abi_minor = DVT_ABI_MINOR, b.abi_draft = DVT_ABI_DRAFT;
    b.name = backend_name, b.version = BACKEND_VERSION, b.build_info = "compiler " __VERSION__;
    b.kernels = table.data(), b.n_kernels = table.size();
    b.device_count = device_count, b.device_open = device_open, b.device_close = device_close;
    b.device_props = device_props, b.device_reset = device_reset;
    b.alloc = alloc, b.dealloc = dealloc, b.copy = copy, b.mem_info = mem_info, b.streams = &streams;
    b.extension = extension;
    return b;
  }();
  *out = &backend;
  return DVT_OK;
}
