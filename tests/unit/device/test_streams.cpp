#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "check.hpp"
#include "device/plugins.hpp"

using namespace plugins;

namespace {
struct TwoStreams {
  Device& device = queue().device;
  Stream& a = *device.default_stream;
  Stream& b = *device.new_stream(0);
  ~TwoStreams() { device.free_stream(&b); }
};
constexpr int kLate = 60;  // ms by which a queue is late; a missing wait shows in that time
}  // namespace

TEST(one_stream_needs_no_events) {
  Vector x = filled(queue().device, 100, 1), y = filled(queue().device, 100, 2);
  const uint64_t waits = queue().waits();
  for (int i = 0; i < 100; ++i) {
    Vector z = add(x, y);
    y = add(z, x);
  }
  CHECK(is(y, 202));
  CHECK_EQ(queue().waits(), waits);
}

TEST(reading_from_another_stream_waits_for_the_writer) {
  TwoStreams s;
  Vector x = filled(s.device, 100, 1, s.a), y = filled(s.device, 100, 0, s.a);
  stall(s.a, kLate);
  run("add", s.a, {&x, &x}, y);
  const uint64_t waits = queue().waits();
  Vector z = add(y, y, s.b);
  CHECK(is(z, 4, s.b));
  CHECK_EQ(queue().waits(), waits + 1);
  for (int i = 0; i < 10; ++i) add(y, y, s.b);  // b has waited for y already
  CHECK_EQ(queue().waits(), waits + 1);
}

TEST(writing_from_another_stream_waits_for_readers) {
  TwoStreams s;
  Vector x = filled(s.device, 100, 1, s.a), y = filled(s.device, 100, 5, s.a);
  s.a.synchronize();
  stall(s.b, kLate);
  Vector z = add(x, x, s.b);
  run("add", s.a, {&y, &y}, x);  // in place
  CHECK(is(z, 2, s.b));
  CHECK(is(x, 10, s.a));
}

TEST(the_host_waits_before_it_writes) {
  TwoStreams s;
  Vector x = filled(s.device, 100, 1, s.a);
  s.a.synchronize();
  stall(s.b, kLate);
  Vector z = add(x, x, s.b);
  const auto begin = std::chrono::steady_clock::now();
  host_access(*x.storage, false);  // no other stream writes it
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(kLate / 2));
  host_access(*x.storage, true);
  CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(kLate / 2));
  CHECK(is(z, 2, s.b));
}

// A buffer that the limit forces to be reused while another stream still works on it.
TEST(reuse_waits_for_readers_on_other_streams) {
  TwoStreams s;
  empty_cache(s.device);
  Vector y = filled(s.device, 1 << 20, 7, s.a), z(s.device, 1 << 20, s.b);
  Vector* x = new Vector(filled(s.device, 1 << 20, 3, s.a));
  s.a.synchronize();
  set_memory_limit(s.device, memory_stats(s.device).reserved);
  stall(s.b, kLate);
  run("add", s.b, {x, x}, z);
  void* data = x->storage->data;
  delete x;
  Vector w(s.device, 1 << 20, s.a);
  CHECK_EQ(w.storage->data, data);
  run("add", s.a, {&y, &y}, w);
  CHECK(is(z, 6, s.b));
  CHECK(is(w, 14, s.a));
  set_memory_limit(s.device, 0);
}

TEST(reuse_waits_for_the_stream_that_had_it) {
  TwoStreams s;
  empty_cache(s.device);
  Vector y = filled(s.device, 1 << 20, 7, s.a), z(s.device, 1 << 20, s.b);
  Vector* x = new Vector(filled(s.device, 1 << 20, 3, s.b));
  s.b.synchronize();
  set_memory_limit(s.device, memory_stats(s.device).reserved);
  stall(s.b, kLate);
  run("add", s.b, {x, x}, z);
  delete x;
  Vector w(s.device, 1 << 20, s.a);
  run("add", s.a, {&y, &y}, w);
  CHECK(is(z, 6, s.b));
  CHECK(is(w, 14, s.a));
  set_memory_limit(s.device, 0);
}

TEST(without_a_limit_new_memory_is_taken_before_a_wait) {
  TwoStreams s;
  empty_cache(s.device);
  Vector* x = new Vector(filled(s.device, 5000, 3, s.b));
  s.b.synchronize();
  stall(s.b, kLate);
  void* data = x->storage->data;
  {
    Vector z = add(*x, *x, s.b);
  }
  delete x;
  const uint64_t waits = queue().waits();
  {
    Vector w(s.device, 5000, s.a);
    CHECK(w.storage->data != data);
  }
  CHECK_EQ(queue().waits(), waits);
  s.b.synchronize();
  empty_cache(s.device);
}

TEST(memory_that_a_queue_has_passed_is_reused_without_a_wait) {
  TwoStreams s;
  empty_cache(s.device);
  void* data;
  {
    Vector x = filled(s.device, 5000, 3, s.b);
    Vector z = add(x, x, s.a);
    data = x.storage->data;
  }
  s.a.synchronize();
  s.b.synchronize();
  const uint64_t waits = queue().waits();
  Vector one(s.device, 5000, s.a), two(s.device, 5000, s.a);
  CHECK(one.storage->data == data || two.storage->data == data);
  CHECK_EQ(queue().waits(), waits);
}

TEST(a_thread_has_its_own_stream) {
  TwoStreams s;
  set_current_stream(s.device, &s.b);
  CHECK_EQ(&current_stream(s.device), &s.b);
  std::thread([&] { CHECK_EQ(&current_stream(s.device), &s.a); }).join();
  Vector x = filled(s.device, 10, 1);
  CHECK_EQ(x.storage->stream, &s.b);
  void* data;
  {
    Vector y(s.device, 10);
    data = y.storage->data;
  }
  CHECK_EQ(Vector(s.device, 10).storage->data, data);  // its thread cache came along
  set_current_stream(s.device, nullptr);
  CHECK_EQ(&current_stream(s.device), &s.a);
}

TEST(user_streams_are_handed_out_again) {
  Device& device = queue().device;
  Stream* a = device.new_stream(0);
  CHECK(a != device.default_stream);
  device.free_stream(a);
  device.free_stream(a);  // a second destruction has no effect
  Stream *b = device.new_stream(0), *c = device.new_stream(0);
  CHECK_EQ(a, b);
  CHECK(b != c);
  std::vector<Stream*> more;
  for (int i = 0; i < 20; ++i) more.push_back(device.new_stream(0));
  // This device has at most 12, the default one included: the 22 share 11.
  std::set<Stream*> different{b, c};
  different.insert(more.begin(), more.end());
  CHECK_EQ(different.size(), 11u);
  CHECK(!different.contains(device.default_stream));
  for (Stream* s : more) device.free_stream(s);
  device.free_stream(b);
  device.free_stream(c);
  CHECK_EQ(minimal().new_stream(0), minimal().default_stream);
}

TEST(a_device_of_two_streams) {
  static uint32_t made = 0;
  static dvt_streams streams = *queue().device.backend->table->streams;
  static const auto create = streams.create;
  streams.create = [](dvt_device* d, int32_t priority, dvt_stream** out) {
    return ++made > 2 ? dvt_status(DVT_INVALID) : create(d, priority, out);
  };
  static dvt_backend table = *queue().device.backend->table;
  static const auto props = table.device_props;
  table.name = "two_streams", table.streams = &streams;
  table.device_props = [](dvt_device* d, dvt_props* p) {
    const dvt_status status = props(d, p);
    p->max_streams = 2;
    return status;
  };
  Device& device = *attach_backend("two_streams", &table).devices.at(0);
  std::vector<Stream*> all;
  for (int i = 0; i < 4; ++i) all.push_back(device.new_stream(i % 2));
  CHECK_EQ(made, 2u);
  CHECK(all[0] != device.default_stream && all[0] == all[3]);
  std::vector<Vector> sums;
  for (size_t i = 0; i < all.size(); ++i) {
    Vector x = filled(device, 1000, float(i), *all[i]);
    sums.push_back(add(x, i ? sums.back() : x, *all[i]));
  }
  CHECK(is(sums.back(), 0 + 0 + 1 + 2 + 3, *device.default_stream));
  for (Stream* s : all) device.free_stream(s);
}

// ---- faults -----------------------------------------------------------------------------------------------------

namespace {
// take(x, {9, 99}) on `stream`, with an x of 64 elements.
Vector take_badly(Stream& stream) {
  Vector x = filled(stream.device, 64, 1, stream), k(stream.device, 2, stream, DType::i64),
         out(stream.device, 2, stream);
  write(k, std::vector<int64_t>{9, 99}, stream);
  run("take", stream, {&x, &k}, out);
  return out;
}
constexpr char kBadIndex[] = "[take] index 99 is out of range: the axis has 64 elements";
}  // namespace

TEST(a_late_fault_names_its_op_and_is_raised_once) {
  Stream& stream = *queue().device.default_stream;
  Vector out = take_badly(stream);
  CHECK_THROWS(Error, kBadIndex, stream.synchronize());
  stream.synchronize();
  out = take_badly(stream);
  CHECK_THROWS(Error, kBadIndex, read(out));
  CHECK_EQ(read(out)[0], 1.f);
  out = take_badly(stream);
  CHECK_THROWS(Error, kBadIndex, host_access(*out.storage, false));
  out = take_badly(stream);
  Event event(stream.device);
  event.record(stream);
  try {
    event.synchronize();
    CHECK(false);
  } catch (const Error& e) {
    CHECK(e.kind == ErrorKind::index);
  }
  take_badly(stream), take_badly(stream);
  CHECK_THROWS(Error, kBadIndex, stream.device.synchronize());
  stream.device.synchronize();
  Vector ok = filled(stream.device, 8, 2);
  CHECK(is(ok, 2));
}

TEST(a_fault_that_a_poll_finds_is_kept) {
  Stream& stream = *queue().device.default_stream;
  Vector out = take_badly(stream);
  while (!stream.idle()) std::this_thread::yield();
  CHECK_THROWS(Error, kBadIndex, stream.synchronize());
}

TEST(a_fault_on_a_synchronous_call_is_raised_at_once) {
  Device& device = minimal();
  Stream& stream = *device.default_stream;
  CHECK_THROWS(Error, "[take] index out of range", take_badly(stream));
}

TEST(a_lost_device_raises_until_reset) {
  Device& device = queue().device;
  Vector x = filled(device, 100, 1), out(device, 100);
  queue().lose();
  CHECK_THROWS(Error, "[add] the device was lost, as the test wished",
               run("add", *device.default_stream, {&x, &x}, out));
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS(Error, "[queue:0] the device was lost, and the contents of its memory; reset() it, or start",
                 add(x, x));
    CHECK_THROWS(Error, "[queue:0] the device was lost", Vector(device, 100));
    CHECK_THROWS(Error, "[queue:0] the device was lost", device.synchronize());
    CHECK_THROWS(Error, "[queue:0] the device was lost", read(x));
    CHECK_THROWS(Error, "[queue:0] the device was lost", device.new_stream(0));
    CHECK_THROWS(Error, "[queue:0] the device was lost", host_access(*x.storage, false));
  }
  CHECK(!device.synchronous);
  empty_cache(device);
  device.reset();
  Vector y = filled(device, 100, 4);
  Vector z = add(y, y);
  CHECK(is(z, 8));
  CHECK_THROWS(Error, "cannot be reset", minimal().reset());
}

// ---- events -----------------------------------------------------------------------------------------------------

TEST(events) {
  TwoStreams s;
  Event event(s.device);
  CHECK(event.query());
  event.synchronize();
  event.wait(s.b);
  queue().hold(1);
  Vector x(s.device, 10, s.a);
  run("add", s.a, {&x, &x}, x);
  event.record(s.a);
  CHECK(!event.query());
  CHECK(!s.a.idle());
  event.wait(s.b);
  Event after(s.device);
  after.record(s.b);
  queue().hold(0);
  after.synchronize();
  CHECK(event.query());

  Event from(s.device, true), to(s.device, true);
  from.record(s.a);
  stall(s.a, 5);
  to.record(s.a);
  to.synchronize();
  const uint64_t ns = Event::elapsed_ns(from, to);
  CHECK(ns >= 5'000'000 && ns < 5'000'000'000);
  CHECK_THROWS(Error, "expected two timing events", Event::elapsed_ns(event, to));
  queue().hold(1);
  Event alone(s.device, true);  // all work before it is done
  alone.record(s.a);
  CHECK(!alone.query());
  queue().hold(0);
  alone.synchronize();
  CHECK(Event::elapsed_ns(to, alone) < 5'000'000'000);

  Event host_from(minimal(), true), host_to(minimal(), true);
  host_from.record(*minimal().default_stream);
  usleep(1000);
  host_to.record(*minimal().default_stream);
  CHECK(host_to.query());
  CHECK(Event::elapsed_ns(host_from, host_to) >= 1'000'000);
  CHECK_THROWS(Error, "expected a stream of queue:0", event.record(*minimal().default_stream));
}

TEST(foreign_memory_is_kept_until_the_queues_have_passed) {
  TwoStreams s;
  static std::atomic<int> deleted{0};
  static std::vector<float> memory(64, 3.f);
  {
    Vector x(adopt(s.device, s.a, memory.data(), [](Storage*) { ++deleted; }, nullptr), 64);
    queue().hold(1);
    Vector y = add(x, x, s.b);
  }
  CHECK_EQ(deleted.load(), 0);
  queue().hold(0);
  s.device.synchronize();
  CHECK_EQ(deleted.load(), 1);
}

// ---- the interpreter's lock -------------------------------------------------------------------------------------

namespace {
std::mutex interpreter_lock;
thread_local bool holds = false;
void take_lock(void*) {
  interpreter_lock.lock();
  holds = true;
}
void* drop_lock() {
  if (!holds) return nullptr;
  holds = false;
  interpreter_lock.unlock();
  return &interpreter_lock;
}

// `wait` needs the queues to run, and a job that needs the lock keeps them busy.
template <class Wait>
void waits_without_the_lock(Wait wait) {
  queue().hold(1);
  take_lock(nullptr);
  std::thread other([] {
    take_lock(nullptr);
    queue().hold(0);
    drop_lock();
  });
  wait();
  CHECK(holds);
  drop_lock();
  other.join();
}
}  // namespace

TEST(waits_release_the_interpreters_lock) {
  interpreter = {drop_lock, take_lock};
  Device& device = queue().device;
  Stream& stream = *device.default_stream;
  Vector x = filled(device, 10, 1), y = add(x, x);
  Event event(device);
  const auto work = [&] { run("add", stream, {&x, &x}, y); };
  waits_without_the_lock([&] { work(), stream.synchronize(); });
  waits_without_the_lock([&] { work(), device.synchronize(); });
  waits_without_the_lock([&] { work(), host_access(*y.storage, false); });
  waits_without_the_lock([&] { work(), event.record(stream), event.synchronize(); });
  waits_without_the_lock([&] { work(), read(y); });
  take_lock(nullptr);
  std::atomic<bool> ready{false};
  std::thread other([&] {  // in a call on the stream, which will need the interpreter
    const auto order = stream.lock();
    ready = true;
    take_lock(nullptr);
    drop_lock();
  });
  while (!ready) std::this_thread::yield();
  const auto order = stream.lock();
  CHECK(holds);
  drop_lock();
  other.join();
  interpreter = Interpreter{};
}

TEST(calls_on_a_stream_never_overlap) { CHECK_EQ(queue().overlaps(), 0u); }

CHECK_MAIN
