// Threads that call ops on shared arrays while others change kernels, plans, limits and streams:
// test_call_hammer [seconds] [threads], 3 and 8 by default. Meant for ThreadSanitizer.
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <thread>

#include "device/plugins.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/rows.hpp"
#include "graph/program.hpp"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

using namespace plugins;
using Ints = std::vector<int64_t>;

namespace {
std::atomic<bool> stop{false};
std::atomic<uint64_t> steps{0}, wrong{0}, swapped{0};

void expect(bool ok, const std::string& what) {
  if (ok) return;
  if (++wrong <= 20) std::fprintf(stderr, "wrong: %s\n", what.c_str());
}

// ---- arrays whose elements are all equal ------------------------------------------------------------------------

struct Entry {
  Tensor t;
  float value;
};

Tensor number(float v) { return host_scalar(DType::f32, &v); }

Tensor run(const Op& o, std::vector<const Tensor*> in, Attrs attrs = {}, Tensor* replaced = nullptr,
           Device* device = nullptr) {
  Tensor out;
  Invocation inv(o, device, in.data(), int(in.size()), attrs);
  inv.replaced = replaced;
  inv.out[0] = &out;
  inv.infer();
  inv.run();
  return out;
}
const Op& named(const char* name) {
  static std::mutex mutex;
  static std::map<std::string, const Op*> known;
  const std::lock_guard lock(mutex);
  const Op*& o = known[name];
  return o ? *o : *(o = &dovetail::op(name));
}
Tensor with_ints(const char* name, const Tensor& x, const Ints& values) {
  Attrs attrs = named(name).defaults;
  attrs.set_ints(0, values);
  return run(named(name), {&x}, attrs);
}

Tensor filled(Device& device, const Ints& shape, float value) {
  Tensor t;
  t.set_type(DType::f32, &device);
  t.set_shape(shape);
  Stream& stream = current_stream(device);
  t.own(allocate(device, device.index, stream, t.bytes()));
  std::vector<float> values(t.numel, value);
  DLTensor host = t.view;
  host.data = values.data(), host.device = {static_cast<decltype(host.device.device_type)>(1), 0};
  use(*t.storage, stream, true);
  copy_bytes(device, stream, t.view, host);
  return t;
}

void expect_is(const Tensor& given, float value, const char* what) {
  const Tensor t = given.dense ? given : compact(given);
  Device& device = *t.device;
  Stream& stream = current_stream(device);
  std::vector<float> values(t.numel, -1);
  DLTensor host = t.view;
  host.data = values.data(), host.device = {static_cast<decltype(host.device.device_type)>(1), 0};
  use(*t.storage, stream, false);
  copy_bytes(device, stream, host, t.view);
  for (const float v : values)
    if (v != value)
      return expect(false,
                    std::string(what) + ": got " + std::to_string(v) + ", expected " + std::to_string(value));
}

struct Shared {
  std::mutex mutex;
  std::vector<Entry> entries;
  Entry pick(std::mt19937& random) {
    const std::lock_guard lock(mutex);
    return entries[random() % entries.size()];
  }
  void put(std::mt19937& random, Entry entry) {
    const std::lock_guard lock(mutex);
    std::swap(entries[random() % entries.size()], entry);
  }
};
const std::vector<Ints> kShapes{{24}, {2, 12}, {4, 6}, {2, 3, 4}, {16, 24}, {}};

// ---- decompositions ---------------------------------------------------------------------------------------------

// x1 + x2 + 1, over intermediate values, a view and a region.
std::vector<int> trace(const Invocation& inv, const std::shared_ptr<ProgramBuilder>& builder,
                       const std::vector<int>& in) {
  ProgramBuilder& b = *builder;
  b.fix(inv.attrs, 0);
  const int x = in[0], y = in[1];
  int v = b.call(named("add"), {x, y}, {});
  const int rank = b.value(v).rank();
  Attrs shape;
  shape.set_ints(0, b.value(v).shape());
  v = b.call(named("reshape"), {b.call(named("add"), {v, b.constant(scalar_of(number(1)))}, {})}, shape);
  if (rank && b.value(v).same_shape(b.value(x))) {
    Attrs region;
    region.set_ints(0, Ints(rank, 0)), region.set_ints(1, b.value(v).shape()), region.set_ints(2, Ints(rank, 1));
    v = b.call(named("set_slice"), {b.call(named("add"), {x, y}, {}), v}, region);
  }
  return {v};
}

const Op& composite(const std::string& name) {
  return register_op({.name = name,
                      .shape = "broadcast",
                      .dtype = "promote",
                      .params = {{"x1", ParamKind::value}, {"x2", ParamKind::value}},
                      .flags = op_has_decomposition | op_complex_decomposition});
}

// An op with a decomposition (a + b + 1) that gets a kernel (a + b) while all threads call it.
struct Swap {
  const Op* op;
  Device* device;
  std::atomic<bool> has_kernel{false};
};
std::atomic<Swap*> latest{nullptr};

void call_swap(Swap& s, const Entry& a, const Entry& b) {
  const bool had = s.has_kernel;
  const Tensor out = run(*s.op, {&a.t, &b.t});
  if (had) expect_is(out, a.value + b.value, "an op whose kernel was there");
}

void add_swap(Device& device, const Entry& a, const Entry& b) {
  constexpr uint64_t most = 400;  // ops and rows live as long as the process
  const uint64_t n = swapped++;
  if (n >= most) return;
  auto* s = new Swap;
  s->device = &device;
  s->op = &composite("h.swap" + std::to_string(n));
  static auto& kept = *new std::vector<Swap*>;
  static std::mutex mutex;
  {
    const std::lock_guard lock(mutex);
    kept.push_back(s);
  }
  latest = s;
  for (int i = 0; i < 3; ++i) call_swap(*s, a, b);
  auto* row = new dvt_kernel(*kernel_rows(device, "dvt.add").at(0));
  row->op = s->op->kernel_name.c_str();
  static auto& rows = *new std::vector<dvt_kernel*>;
  {
    const std::lock_guard lock(mutex);
    rows.push_back(row);
  }
  add_kernel(device, row);
  s->has_kernel = true;
  call_swap(*s, a, b);
}

// ---- steps ------------------------------------------------------------------------------------------------------

struct Worker {
  Shared& shared;
  Device& device;
  std::vector<Stream*> streams;
  std::mt19937 random;
  uint64_t die(uint64_t n) { return random() % n; }

  std::pair<Entry, Entry> two() {
    Entry a = shared.pick(random), b = shared.pick(random);
    if (!a.t.same_shape(b.t) && die(4)) b = a;
    if (a.t.rank() && b.t.rank() && !a.t.same_shape(b.t)) b = a;
    return {a, b};
  }

  void compute() {
    const auto [a, b] = two();
    const float sum = a.value + b.value;
    if (sum > 1000) return shared.put(random, {filled(device, kShapes[die(kShapes.size())], 1), 1});
    const Tensor out = run(named("add"), {&a.t, &b.t});
    if (die(3) == 0) expect_is(out, sum, "a sum");
    else shared.put(random, {out, sum});
  }

  void views() {
    const Entry a = shared.pick(random);
    const int rank = a.t.rank();
    if (!rank) return;
    Tensor v = a.t;
    for (uint64_t i = 0, n = die(4); i < n; ++i) {
      Ints order, start, stop, step;
      for (int axis = 0; axis < v.rank(); ++axis) {
        order.insert(order.begin() + int(die(order.size() + 1)), axis);
        start.push_back(int64_t(die(2)) * (v.size(axis) > 1)), stop.push_back(v.size(axis)),
            step.push_back(1 + int64_t(die(2)));
      }
      Attrs region;
      region.set_ints(0, start), region.set_ints(1, stop), region.set_ints(2, step);
      v = die(2) ? with_ints("permute_dims", v, order) : run(named("slice"), {&v}, region);
    }
    if (die(2)) v = with_ints("reshape", v, {-1});
    const Tensor two = number(2);
    expect_is(run(named("add"), {&v, &two}), a.value + 2, "a view and a number");
    if (die(4) == 0) shared.put(random, {v, a.value});
    if (shared.entries.size() && v.rank() != 1 && die(2)) return;
    shared.put(random, {filled(device, kShapes[die(kShapes.size())], 3), 3});
  }

  void in_place() {
    const Entry a = shared.pick(random);
    const Tensor one = number(1);
    Tensor x = run(named("add"), {&a.t, &one}), before = x;
    const bool keep = die(2);
    if (!keep) before = Tensor();
    float value = a.value + 1;
    for (uint64_t i = 0, n = 1 + die(4); i < n; ++i) {
      if (die(2)) set_current_stream(device, streams[die(streams.size())]);
      switch (die(3)) {
        case 0: x = run(named("add"), {&x, &x}, {}, &x), value *= 2; break;
        case 1: {
          Attrs region;
          const auto rank = size_t(x.rank());
          region.set_ints(0, Ints(rank, 0)), region.set_ints(1, x.shape()), region.set_ints(2, Ints(rank, 1));
          const Tensor seven = number(7);
          x = run(named("set_slice"), {&x, &seven}, region, &x), value = 7;
          break;
        }
        default: x = run(named("add"), {&x, &one}, {}, &x), value += 1; break;
      }
    }
    expect_is(x, value, "an array changed in place");
    if (keep) expect_is(before, a.value + 1, "its value before");
    expect_is(a.t, a.value, "a shared array");
  }

  void decomposition() {
    static const Op& o = composite("h.decomposition");
    const auto [a, b] = two();
    expect_is(run(o, {&a.t, &b.t}), a.value + b.value + 1, "a decomposition");
    if (Swap* s = latest; s && s->device == &device) call_swap(*s, a, b);
    if (die(100) == 0) add_swap(device, a, b);
  }

  void taken() {
    const Entry a = shared.pick(random);
    if (!a.t.rank()) return;
    const int64_t last = -1;
    const Tensor index = host_scalar(DType::i64, &last);
    Attrs axis;
    axis.at[0] = {DVT_A_I64, 1, {.i = int64_t(die(uint64_t(a.t.rank())))}};
    expect_is(run(named("take"), {&a.t, &index}, axis), a.value, "take");
  }

  // Plans of an op for more dtypes than a table holds.
  void plans() {
    static const Op& o =
        register_op({.name = "h.many",
                     .shape = "same",
                     .dtype = "same",
                     .params = {{"x", ParamKind::value}, {"y", ParamKind::raw}, {"z", ParamKind::raw}},
                     .flags = op_has_decomposition | op_complex_decomposition});
    Tensor t[3];
    for (Tensor& operand : t) operand.set_type(DType(die(kDTypes)), &device), operand.set_shape({});
    if (is_packed(t[0].dtype)) t[0].set_type(DType::f32, &device);  // no op computes with it
    Tensor out;
    const Tensor* in[] = {&t[0], &t[1], &t[2]};
    Attrs attrs;
    Invocation inv(o, &device, in, 3, attrs);
    inv.out[0] = &out;
    for (int i = 0; i < 8; ++i) {
      t[1].set_type(DType(die(kDTypes)), &device);
      inv.infer();
      expect(inv.plan->compute[1] == t[1].dtype && inv.plan->result[0] == t[0].dtype, "a plan");
    }
  }

  void move() {
    Device& other = &device == &minimal() ? queue().device : minimal();
    const Entry a = shared.pick(random);
    expect_is(to_device(a.t, other), a.value, "an array on the other device");
  }

  void housekeeping() {
    switch (die(10)) {
      case 0: empty_cache(device); break;
      case 1: forget_plans(); break;
      case 2: set_fallback(Fallback(die(3))); break;
      case 3: set_memory_limit(device, memory_stats(device).reserved); break;
      case 4: set_memory_limit(device, 0); break;
      case 5: device.synchronize(); break;
      case 6: fallback_report(die(2)); break;
      case 7: all_ops(); break;
      default: set_current_stream(device, streams[die(streams.size())]); break;
    }
  }

  void step() {
    switch (die(16)) {
      case 0: return views();
      case 1: return in_place();
      case 2:
      case 3:
      case 4: return decomposition();
      case 5: return taken();
      case 6: return plans();
      case 7: return die(4) ? compute() : move();
      case 8: return die(8) ? compute() : housekeeping();
      default: return compute();
    }
  }

  void work() {
    while (!stop) {
      try {
        step();
      } catch (const Error& e) {  // the limit may be too low for a step
        if (e.kind != ErrorKind::memory) expect(false, e.what());
        set_memory_limit(device, 0);
      }
      ++steps;
    }
  }
};

void hammer(Device& device, double seconds, int n_threads) {
  std::vector<Stream*> streams{device.default_stream};
  for (int i = 0; i < 3; ++i) streams.push_back(device.new_stream(0));
  Shared shared;
  for (int i = 0; i < 24; ++i)
    shared.entries.push_back({filled(device, kShapes[size_t(i) % kShapes.size()], float(i)), float(i)});
  stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < n_threads; ++t)
    threads.emplace_back([&, t] { Worker{shared, device, streams, std::mt19937(unsigned(t))}.work(); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& t : threads) t.join();
  shared.entries.clear();
  for (Device* d : {&device, &minimal(), &queue().device}) {
    set_memory_limit(*d, 0);
    d->synchronize();
    empty_cache(*d);
    d->synchronize();  // memory is returned in order
    expect(memory_stats(*d).reserved == 0, "everything was given back");
  }
}
}  // namespace

int main(int n, char** args) {
  const double seconds = n > 1 ? std::atof(args[1]) : 3;
  const int threads = n > 2 ? std::atoi(args[2]) : 8;
  decomposition_tracer = trace;
  try {
    queue(), minimal();
    hammer(queue().device, seconds / 2, threads);
    latest = nullptr;
    hammer(minimal(), seconds / 2, threads);
  } catch (const std::exception& e) {
    expect(false, e.what());
  }
  expect(queue().overlaps() == 0, "calls on a stream overlap");
  expect(queue().allocated() == 0, "the plugin still holds memory");
  std::printf("%llu steps, %llu ops that got a kernel, %llu wrong\n", static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(swapped), static_cast<unsigned long long>(wrong));
  return wrong != 0;
}
