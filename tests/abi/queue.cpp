// A device with streams: each is a queue and a worker thread that runs it in order. Written against abi.h alone, in
// C++17. The functions at the end let a test hold the queues, slow them down, and lose the device.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "dovetail/abi.h"

struct dvt_device {};

namespace {
const dvt_host* host;
dvt_device device;

dvt_status fail(dvt_status code, const std::string& message, uint64_t correlation_id = 0) {
  return host->fail(host, code, correlation_id, __FILE__, __LINE__, message.c_str());
}

// ---- controls for tests -----------------------------------------------------------------------------------------

struct Knobs {
  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  std::atomic<uint32_t> delay_us{0};
  std::atomic<bool> lost{false};
  std::atomic<uint64_t> limit{UINT64_MAX};
  std::atomic<uint64_t> allocated{0};
  std::atomic<uint64_t> overlaps{0};  // calls on one stream that the host ran at the same time
  std::atomic<uint64_t> waits{0};     // ev_wait

  void pass() {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return !held; });
    }
    if (const uint32_t us = delay_us) std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
};
Knobs& knobs = *new Knobs;  // worker threads use it until the process ends

dvt_status lost() { return fail(DVT_DEVICE_LOST, "the device was lost, as the test wished"); }

uint64_t now_ns() {
  return uint64_t(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}
}  // namespace

// ---- streams ----------------------------------------------------------------------------------------------------

struct dvt_stream {
  using Job = std::function<void()>;

  void push(Job job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(std::move(job));
      ++queued_;
    }
    changed_.notify_all();
  }
  uint64_t tail() {
    std::lock_guard<std::mutex> lock(mutex_);
    return queued_;
  }
  bool done(uint64_t job) {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ >= job;
  }
  void wait(uint64_t job) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= job; });
  }
  // A fault waits here until the host queries it.
  void poison(uint64_t correlation_id, std::string message) {
    std::lock_guard<std::mutex> lock(mutex_);
    faults_.push_back({correlation_id, std::move(message)});
  }
  dvt_status take_fault() {
    if (knobs.lost) return lost();
    Fault fault;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (faults_.empty()) return DVT_OK;
      fault = std::move(faults_.front());
      faults_.pop_front();
    }
    return fail(DVT_INDEX, fault.message, fault.correlation_id);
  }
  void finish() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  // Checks that calls on one stream never overlap: every such call holds one of these.
  struct Call {
    explicit Call(dvt_stream* s) : stream(s) {
      if (stream && stream->calls_.fetch_add(1)) ++knobs.overlaps;
    }
    ~Call() {
      if (stream) --stream->calls_;
    }
    dvt_stream* stream;
  };

 private:
  struct Fault {
    uint64_t correlation_id;
    std::string message;
  };
  void loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      knobs.pass();
      job();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::deque<Fault> faults_;
  uint64_t queued_ = 0, done_ = 0;
  bool stop_ = false;
  std::atomic<int> calls_{0};
  std::thread worker_{[this] { loop(); }};
};

struct dvt_event {
  bool timing = false;
  dvt_stream* stream = nullptr;  // nullptr: never recorded
  uint64_t at = 0;               // the job it comes after
  std::shared_ptr<std::atomic<uint64_t>> time;
};

namespace {
template <class F>
dvt_status enqueue(dvt_stream* stream, F job) {
  if (knobs.lost) return lost();
  const dvt_stream::Call call(stream);
  if (stream) stream->push(std::move(job));
  else job();
  return DVT_OK;
}

dvt_status create_stream(dvt_device*, int32_t, dvt_stream** out) {
  *out = new dvt_stream;
  return DVT_OK;
}
void destroy_stream(dvt_stream* s) {
  s->finish();
  delete s;
}
dvt_status sync_stream(dvt_stream* s) {
  const dvt_stream::Call call(s);
  s->wait(s->tail());
  return s->take_fault();
}

dvt_status create_event(dvt_device*, uint32_t timing, dvt_event** out) {
  *out = new dvt_event;
  (*out)->timing = timing != 0;
  return DVT_OK;
}
void destroy_event(dvt_event* e) { delete e; }
dvt_status record(dvt_event* e, dvt_stream* s) {
  if (knobs.lost) return lost();
  const dvt_stream::Call call(s);
  if (e->timing) {
    e->time = std::make_shared<std::atomic<uint64_t>>(0);
    s->push([time = e->time] { *time = now_ns(); });
  }
  e->stream = s, e->at = s->tail();
  return DVT_OK;
}
dvt_status wait_event(dvt_stream* s, dvt_event* e) {
  if (knobs.lost) return lost();
  const dvt_stream::Call call(s);
  ++knobs.waits;
  if (e->stream && e->stream != s) s->push([other = e->stream, at = e->at] { other->wait(at); });
  return DVT_OK;
}
dvt_status sync_event(dvt_event* e) {
  if (!e->stream) return DVT_OK;
  if (!knobs.lost) e->stream->wait(e->at);
  return e->stream->take_fault();
}
dvt_status query_event(dvt_event* e, uint32_t* done) {
  *done = !e->stream || e->stream->done(e->at);
  return e->stream ? e->stream->take_fault() : DVT_OK;
}
dvt_status elapsed(dvt_event* from, dvt_event* to, uint64_t* ns) {
  if (!from->time || !to->time) return fail(DVT_INVALID, "events without timing");
  *ns = *to->time - *from->time;
  return DVT_OK;
}
dvt_status host_fn(dvt_stream* s, void (*fn)(void*), void* ctx) {
  return enqueue(s, [=] { fn(ctx); });
}

const dvt_streams streams = {
    sizeof streams, DVT_S_CROSS_DEVICE, create_stream, destroy_stream, sync_stream, create_event, destroy_event,
    record,         wait_event,         sync_event,    query_event,    elapsed,     nullptr,      nullptr,
    host_fn};

// ---- kernels; a job copies what it needs of the call ------------------------------------------------------------

struct View {
  char* data;
  int ndim;
  size_t itemsize;
  int64_t shape[DVT_MAX_NDIM], strides[DVT_MAX_NDIM];

  explicit View(const DLTensor* t) : data(static_cast<char*>(t->data)), ndim(t->ndim), itemsize(t->dtype.bits / 8) {
    std::copy(t->shape, t->shape + ndim, shape);
    std::copy(t->strides, t->strides + ndim, strides);
  }
  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < ndim; ++i) n *= shape[i];
    return n;
  }
  char* at(int64_t i) const {  // in row-major order
    int64_t offset = 0;
    for (int axis = ndim - 1; axis >= 0; --axis) {
      offset += i % shape[axis] * strides[axis];
      i /= shape[axis];
    }
    return data + offset * int64_t(itemsize);
  }
};

template <class T, class Op>
dvt_status elementwise(const dvt_call* c) {
  return enqueue(c->stream, [a = View(c->in[0]), b = View(c->in[1]), out = View(c->out[0])] {
    for (int64_t i = 0, n = out.size(); i < n; ++i)
      *reinterpret_cast<T*>(out.at(i)) = Op()(*reinterpret_cast<T*>(a.at(i)), *reinterpret_cast<T*>(b.at(i)));
  });
}
dvt_status add(dvt_device*, const dvt_call* c) { return elementwise<float, std::plus<float>>(c); }
dvt_status multiply(dvt_device*, const dvt_call* c) { return elementwise<float, std::multiplies<float>>(c); }

dvt_status copy_elements(dvt_device*, const dvt_call* c) {
  return enqueue(c->stream, [from = View(c->in[0]), to = View(c->out[0])] {
    for (int64_t i = 0, n = to.size(); i < n; ++i) std::memcpy(to.at(i), from.at(i), to.itemsize);
  });
}

// out[i, j, k] = x[i, indices[j], k], all row-major. Returns the error; a bad index leaves its elements
// unwritten.
std::string take_rows(const View& x, const View& indices, const View& out, int axis) {
  std::string wrong;
  int64_t outer = 1;
  size_t inner = x.itemsize;
  for (int i = 0; i < axis; ++i) outer *= x.shape[i];
  for (int i = axis + 1; i < x.ndim; ++i) inner *= size_t(x.shape[i]);
  const int64_t n = indices.size(), axis_size = x.shape[axis];
  char* to = out.data;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < n; ++j, to += inner) {
      int64_t k = reinterpret_cast<const int64_t*>(indices.data)[j];
      if (k < -axis_size || k >= axis_size) {
        wrong = "index " + std::to_string(k) + " is out of range: the axis has " + std::to_string(axis_size) +
                " elements";
        continue;
      }
      if (k < 0) k += axis_size;
      std::memcpy(to, x.data + size_t(i * axis_size + k) * inner, inner);
    }
  return wrong;
}

dvt_status take(dvt_device*, const dvt_call* c) {
  const int axis = c->n_attr && c->attr[0].kind == DVT_A_I64 ? int(c->attr[0].v.i) : 0;
  const View x(c->in[0]), indices(c->in[1]), out(c->out[0]);
  if (!c->stream) {
    const std::string wrong = take_rows(x, indices, out, axis);
    return wrong.empty() ? DVT_OK : fail(DVT_INDEX, wrong);
  }
  return enqueue(c->stream, [=, stream = c->stream, id = c->correlation_id] {
    std::string wrong = take_rows(x, indices, out, axis);
    if (!wrong.empty()) stream->poison(id, std::move(wrong));
  });
}

constexpr DLDataType f32{DVT_FLOAT, 32, 1}, i64{DVT_INT, 64, 1}, any8{DVT_ANY, 8, 1}, any32{DVT_ANY, 32, 1},
    any64{DVT_ANY, 64, 1};
constexpr uint8_t elementwise_flags = DVT_O_STRIDED | DVT_O_ALIAS;
const dvt_operand binary_f32[] = {{f32, elementwise_flags, 0, 0}, {f32, elementwise_flags, 0, 0}, {f32, 0, 0, 0}};
const dvt_operand copy8[] = {{any8, DVT_O_STRIDED, 0, 0}, {any8, 0, 0, 0}};
const dvt_operand copy32[] = {{any32, DVT_O_STRIDED, 0, 0}, {any32, 0, 0, 0}};
const dvt_operand copy64[] = {{any64, DVT_O_STRIDED, 0, 0}, {any64, 0, 0, 0}};
const dvt_operand take32[] = {{any32, 0, 0, 0}, {i64, 0, 0, 0}, {any32, 0, 0, 0}};
const dvt_operand take64[] = {{any64, 0, 0, 0}, {i64, 0, 0, 0}, {any64, 0, 0, 0}};

using Run = dvt_status (*)(dvt_device*, const dvt_call*);
constexpr dvt_kernel row(const char* op, const dvt_operand* operands, uint32_t n_in, Run run) {
  return {sizeof(dvt_kernel),          1, op,  nullptr, operands, n_in,   1,
          DVT_K_BITWISE_DETERMINISTIC, 0, run, nullptr, nullptr,  nullptr};
}
const dvt_kernel rows[] = {row("dvt.add", binary_f32, 2, add),        row("dvt.multiply", binary_f32, 2, multiply),
                           row("dvt.copy", copy8, 1, copy_elements),  row("dvt.copy", copy32, 1, copy_elements),
                           row("dvt.copy", copy64, 1, copy_elements), row("dvt.take", take32, 2, take),
                           row("dvt.take", take64, 2, take)};
const dvt_kernel* const table[] = {&rows[0], &rows[1], &rows[2], &rows[3], &rows[4], &rows[5], &rows[6]};

// ---- the device -------------------------------------------------------------------------------------------------

dvt_status device_count(uint32_t* n) {
  *n = 1;
  return DVT_OK;
}
dvt_status device_open(uint32_t index, dvt_device** out) {
  if (index) return fail(DVT_INVALID, "there is one device only");
  *out = &device;
  return DVT_OK;
}
void device_close(dvt_device*) {}
dvt_status device_props(dvt_device*, dvt_props* p) {
  std::strcpy(p->name, "queue");
  DVT_PUT(p, dvt_props, kind, DVT_KIND_OTHER);
  DVT_PUT(p, dvt_props, dl_device_type, 12 /* kDLExtDev */);
  DVT_PUT(p, dvt_props, alloc_align, 256);
  DVT_PUT(p, dvt_props, max_streams, 12);
  return DVT_OK;
}
dvt_status device_reset(dvt_device*) {
  knobs.lost = false;
  return DVT_OK;
}

// The size is stored before the memory.
dvt_status alloc(dvt_device*, uint64_t size, uint32_t mem, dvt_stream* s, void** out) {
  if (knobs.lost) return lost();
  const dvt_stream::Call call(s);
  if (mem != DVT_MEM_DEVICE) return DVT_UNSUPPORTED;
  if (knobs.allocated + size > knobs.limit) return DVT_OOM;
  char* memory = static_cast<char*>(std::aligned_alloc(256, size + 256));
  if (!memory) return DVT_OOM;
  std::memcpy(memory, &size, sizeof size);
  knobs.allocated += size;
  *out = memory + 256;
  return DVT_OK;
}
void dealloc(dvt_device*, void* data, uint32_t, dvt_stream* s) {
  enqueue(s, [memory = static_cast<char*>(data) - 256] {
    uint64_t size;
    std::memcpy(&size, memory, sizeof size);
    knobs.allocated -= size;
    std::free(memory);
  });
}

dvt_status copy(dvt_device*, const DLTensor* to, const DLTensor* from, dvt_stream* s) {
  const View source(from);
  const dvt_status status = enqueue(s, [a = to->data, b = from->data, n = size_t(source.size()) * source.itemsize] {
    if (n) std::memcpy(a, b, n);
  });
  if (s && status == DVT_OK && (to->device.device_type == 1 || from->device.device_type == 1)) s->wait(s->tail());
  return status;
}

const dvt_backend backend = {sizeof backend, DVT_ABI_MAJOR, DVT_ABI_MINOR,
                             DVT_ABI_DRAFT,  "queue",       "0.1",
                             __VERSION__,    table,         sizeof table / sizeof *table,
                             device_count,   device_open,   device_close,
                             device_props,   alloc,         dealloc,
                             copy,           nullptr,       device_reset,
                             &streams,       nullptr};
}  // namespace

extern "C" {
int32_t dvt_probe_v1(char*, size_t) { return 1; }

dvt_status dvt_backend_v1(const dvt_host* h, const dvt_backend** out) {
  host = h;
  if (h->abi_draft != DVT_ABI_DRAFT) return fail(DVT_INVALID, "built for another draft of dovetail/abi.h");
  *out = &backend;
  return DVT_OK;
}

// For tests: no queue starts a job while it is held; every job sleeps first; every call fails until
// device_reset; the total bytes that alloc returned.
DVT_EXPORT void queue_hold(int held) {
  {
    std::lock_guard<std::mutex> lock(knobs.mutex);
    knobs.held = held != 0;
  }
  knobs.changed.notify_all();
}
DVT_EXPORT void queue_delay_us(uint32_t us) { knobs.delay_us = us; }
DVT_EXPORT void queue_lose(void) { knobs.lost = true; }
DVT_EXPORT void queue_limit(uint64_t bytes) { knobs.limit = bytes; }
DVT_EXPORT uint64_t queue_allocated(void) { return knobs.allocated; }
DVT_EXPORT uint64_t queue_overlaps(void) { return knobs.overlaps; }
DVT_EXPORT uint64_t queue_waits(void) { return knobs.waits; }
}
