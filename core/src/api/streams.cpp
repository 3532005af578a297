// Streams, events, generators of random numbers.
#include "api/api.hpp"
#include "dispatch/generator.hpp"

using namespace dovetail;
using namespace dovetail::api;

namespace {
Generator& to(dvr_generator* g) { return expect(reinterpret_cast<Generator*>(g), "the generator"); }
using api::to;

// A device has its own streams; another's would run nothing of it.
Stream& on(Stream& stream, Device& device) {
  if (&stream.device != &device)
    throw Error(ErrorKind::value,
                "a stream of " + stream.device.name + " for " + device.name + ": expected one of the same device");
  return stream;
}
}  // namespace

dvr_status dvr_stream_new(dvr_device* d, int32_t priority, dvr_stream** out) {
  return guarded("stream_new", [&] {
    dvr_stream*& result = expect(out, "the result");
    result = reinterpret_cast<dvr_stream*>(to(d).new_stream(priority));
  });
}
void dvr_stream_free(dvr_stream* s) {
  if (!s) return;
  Stream& stream = to(s);
  if (&stream != stream.device.default_stream) stream.device.free_stream(&stream);
}
dvr_stream* dvr_default_stream(dvr_device* d) {
  return d ? reinterpret_cast<dvr_stream*>(to(d).default_stream) : nullptr;
}
dvr_stream* dvr_current_stream(dvr_device* d) {
  return d ? reinterpret_cast<dvr_stream*>(&current_stream(to(d))) : nullptr;
}
dvr_status dvr_set_current_stream(dvr_device* d, dvr_stream* s) {
  return guarded("set_current_stream", [&] { set_current_stream(to(d), s ? &on(to(s), to(d)) : nullptr); });
}
dvr_status dvr_stream_synchronize(dvr_stream* s) {
  return guarded("stream_synchronize", [&] { to(s).synchronize(); });
}
dvr_status dvr_stream_query(dvr_stream* s, uint32_t* idle) {
  return guarded("stream_query", [&] { expect(idle, "the result") = to(s).idle(); });
}
dvr_status dvr_stream_wait(dvr_stream* s, dvr_stream* other) {
  return guarded("stream_wait", [&] { to(s).wait_for(to(other)); });
}
void* dvr_stream_native(dvr_stream* s) {
  if (!s) return nullptr;
  Stream& stream = to(s);
  const dvt_backend* table = stream.device.backend->table;
  const dvt_streams* functions = DVT_HAS(table, dvt_backend, streams) ? table->streams : nullptr;
  const bool named = stream.handle && functions && DVT_HAS(functions, dvt_streams, native);
  return named ? functions->native(stream.handle) : nullptr;
}

dvr_status dvr_event_new(dvr_device* d, uint32_t timing, dvr_event** out) {
  return guarded("event_new", [&] {
    dvr_event*& result = expect(out, "the result");
    result = reinterpret_cast<dvr_event*>(new Event(to(d), timing != 0));
  });
}
void dvr_event_free(dvr_event* e) { delete reinterpret_cast<Event*>(e); }
dvr_status dvr_event_record(dvr_event* e, dvr_stream* s) {
  return guarded("event_record", [&] {
    Event& event = to(e);
    event.record(s ? on(to(s), event.device()) : current_stream(event.device()));
  });
}
dvr_status dvr_event_wait(dvr_event* e, dvr_stream* s) {
  return guarded("event_wait", [&] {
    Event& event = to(e);
    event.wait(s ? to(s) : current_stream(event.device()));
  });
}
dvr_status dvr_event_synchronize(dvr_event* e) {
  return guarded("event_synchronize", [&] { to(e).synchronize(); });
}
dvr_status dvr_event_query(dvr_event* e, uint32_t* done) {
  return guarded("event_query", [&] { expect(done, "the result") = to(e).query(); });
}
dvr_status dvr_event_elapsed_ns(dvr_event* from, dvr_event* until, uint64_t* ns) {
  return guarded("event_elapsed_ns", [&] { expect(ns, "the result") = Event::elapsed_ns(to(from), to(until)); });
}

dvr_generator* dvr_default_generator(void) {
  dvr_generator* own = nullptr;
  (void)guarded("default_generator", [&] { own = reinterpret_cast<dvr_generator*>(&default_generator()); });
  return own;
}
dvr_status dvr_generator_new(uint64_t seed, dvr_generator** out) {
  return guarded("generator_new", [&] {
    dvr_generator*& result = expect(out, "the result");
    result = reinterpret_cast<dvr_generator*>(new Generator(seed));
  });
}
void dvr_generator_free(dvr_generator* g) {
  auto* own = reinterpret_cast<Generator*>(g);
  if (own && own != &default_generator()) delete own;
}
dvr_status dvr_generator_get(dvr_generator* g, uint64_t* seed, uint64_t* offset) {
  return guarded("generator_get", [&] {
    const auto [s, o] = to(g).state();
    if (seed) *seed = s;
    if (offset) *offset = o;
  });
}
dvr_status dvr_generator_set(dvr_generator* g, uint64_t seed, uint64_t offset) {
  return guarded("generator_set", [&] { to(g).set(seed, offset); });
}
dvr_status dvr_generator_key(dvr_generator* g, uint64_t words, uint32_t key[4]) {
  return guarded("generator_key", [&] {
    expect(key, "the key");
    const auto [seed, offset] = to(g).draw(words);
    const uint64_t both[2] = {seed, offset};
    std::memcpy(key, both, sizeof both);
  });
}
