// The simulated accelerator of backends/template: its functions and its kernels, called as the runtime calls
// them, mainly for the sanitizers. Its own folder tests its behaviour in Python.
#include <atomic>
#include <cmath>
#include <thread>

#include "check.hpp"
#include "device/plugins.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/recorder.hpp"

using plugins::current_stream;
using namespace recorder;

namespace {
Backend& backend() {
  static Backend& b = [&]() -> Backend& {
    plugins::cache();
    setenv(FAULTS, "lost:6@1,delay:1:2ms", 1);
    return load_backend("", plugins::path(PLUGIN), {});
  }();
  return b;
}
Device& device(size_t i = 0) { return *backend().devices.at(i); }

Doubles read(const Tensor& t, Stream& stream) {
  const Tensor from = t.dense ? t : compact(t);
  std::vector<char> bytes(from.bytes() + 1);
  use(*from.storage, stream, false);
  DLTensor host = from.view;
  host.data = bytes.data(), host.device = dl_device(1 /* kDLCPU */, 0);
  copy_bytes(*from.device, stream, host, from.view);
  Doubles v;
  for (uint64_t i = 0; i < from.numel; ++i) v.push_back(get(from.dtype, &bytes[i * info(from.dtype).bytes()]));
  return v;
}
std::string text(const Tensor& t) { return show(read(t, current_stream(*t.device))); }
bool all(const Tensor& t, double value) {
  for (const double v : read(t, current_stream(*t.device)))
    if (v != value) return false;
  return true;
}
constexpr DType f32 = DType::f32, i32 = DType::i32, i64 = DType::i64, b8 = DType::b8;
}  // namespace

// First, because it counts kernels from the start. The other device continues.
TEST(a_lost_device_is_reset) {
  Device& d = device(1);
  Tensor x = array(d, {100}), y = array(device(0), {3});
  CHECK_THROWS(Error, "[add] the device was lost at its kernel 6", {
    for (int i = 0; i < 20; ++i) x = run("add", {&x, &x});
    d.synchronize();
  });
  CHECK_THROWS(Error, "the device was lost", run("add", {&x, &x}));
  CHECK_EQ(text(run("add", {&y, &y})), "0 2 4");
  d.reset();
  x = array(d, {3});
  CHECK_EQ(text(run("add", {&x, &x})), "0 2 4");
}

TEST(kernels_of_every_kind) {
  const Tensor x = array(device(), {2, 3}), n = array(device(), {2, 3}, {5, -7, 2, 0, 9, 3}, i32);
  const Tensor three = number(3, i32), half = number(0.5);
  CHECK_EQ(text(run("subtract", {&n, &three})), "2 -10 -1 -3 6 0");
  CHECK_EQ(text(run("quotient", {&n, &three})), "1 -2 0 0 3 1");
  CHECK_EQ(text(run("bitwise_left_shift", {&n, &three})), "40 -56 16 0 72 24");
  CHECK_EQ(text(run("divide", {&x, &half})), "0 2 4 6 8 10");
  const Tensor least = array(device(), {2}, {-2147483648.0, 2147483647.0}, i32), minus = number(-1, i32);
  CHECK_EQ(read(run("quotient", {&least, &minus}), current_stream(device()))[0], -2147483648.0);
  CHECK_EQ(read(run("multiply", {&least, &least}), current_stream(device()))[1], 1);
  CHECK_EQ(read(run("add", {&least, &minus}), current_stream(device()))[0], 2147483647.0);
  CHECK(std::abs(read(run("exp", {&half}, {}, &device()), current_stream(device()))[0] - 1.6487213) < 1e-6);

  const Tensor t = permute(x, {1, 0}), less = run("less", {&x, &half});
  CHECK_EQ(text(run("copy", {&t})), "0 3 1 4 2 5");
  CHECK_EQ(text(run("where", {&less, &half, &x})), "0.5 1 2 3 4 5");
  CHECK_EQ(text(run("astype", {&t}, {{"dtype", i64}})), "0 3 1 4 2 5");
  CHECK_EQ(text(run("astype", {&t}, {{"dtype", b8}})), "0 1 1 1 1 1");
  CHECK_EQ(text(run("sum", {&t}, {{"axis", Ints{1}}})), "3 5 7");
  CHECK_EQ(text(run("max", {&t}, {{"axis", Ints{0}}})), "2 5");
  CHECK_EQ(text(run("matmul", {&x, &t})), "5 14 14 50");
  CHECK_EQ(text(run("full", {}, {{"shape", Ints{2}}, {"fill_value", 2.5}, {"dtype", f32}}, &device())), "2.5 2.5");
  CHECK_EQ(text(run("iota", {}, {{"size", 4}, {"dtype", i32}}, &device())), "0 1 2 3");
  const Tensor i = array(device(), {2}, {2, -3}, i64), rows = array(device(), {2, 2}, {7, 8, 9, 10});
  CHECK_EQ(text(run("take", {&x, &i}, {{"axis", 1}})), "2 0 5 3");
  CHECK_EQ(text(run("scatter", {&x, &i, &rows}, {{"axis", 1}})), "8 1 7 10 4 9");
}

TEST(a_bad_index_is_found_later) {
  const Tensor x = array(device(), {5}), i = array(device(), {2}, {1, 5}, i64);
  run("take", {&x, &i}, {{"axis", 0}});
  CHECK_THROWS(Error, "[take] index 5 is out of range: axis 0 has 5 elements", device().synchronize());
  device().synchronize();
}

TEST(pinned_memory_is_copied_while_the_host_goes_on) {
  const dvt_backend& table = *backend().table;
  Device& d = device();
  Stream& stream = *d.default_stream;
  constexpr int64_t n = 1000;
  void *from = nullptr, *to = nullptr, *data = nullptr;
  CHECK_EQ(table.alloc(d.handle, 4096, DVT_MEM_PINNED, nullptr, &from), DVT_OK);
  CHECK_EQ(table.alloc(d.handle, 4096, DVT_MEM_PINNED, nullptr, &to), DVT_OK);
  CHECK_EQ(table.alloc(d.handle, 4096, DVT_MEM_DEVICE, stream.handle, &data), DVT_OK);
  CHECK_EQ(table.alloc(d.handle, 4096, DVT_MEM_SHARED, nullptr, &data), DVT_UNSUPPORTED);
  auto* numbers = static_cast<float*>(from);
  for (int i = 0; i < n; ++i) numbers[i] = float(i);
  int64_t shape = n, stride = 1;
  const auto tensor = [&](void* at, DLDevice where) {
    return DLTensor{at, where, 1, info(f32).dl, &shape, &stride, 0};
  };
  const DLDevice host = dl_device(1, 0);
  const DLTensor a = tensor(from, host), b = tensor(data, d.dl), c = tensor(to, host);
  std::atomic<bool> open{false};
  table.streams->host_fn(
      stream.handle,
      [](void* open) {
        while (!*static_cast<std::atomic<bool>*>(open)) std::this_thread::yield();
      },
      &open);
  CHECK_EQ(table.copy(d.handle, &b, &a, stream.handle), DVT_OK);
  CHECK_EQ(table.copy(d.handle, &c, &b, stream.handle), DVT_OK);  // both return while the queue is blocked
  open = true;
  CHECK_EQ(table.streams->sync(stream.handle), DVT_OK);
  CHECK_EQ(static_cast<float*>(to)[n - 1], float(n - 1));
  // Without a stream all work is done on return.
  numbers[0] = 77;
  CHECK_EQ(table.copy(d.handle, &b, &a, nullptr), DVT_OK);
  CHECK_EQ(table.copy(d.handle, &c, &b, nullptr), DVT_OK);
  CHECK_EQ(static_cast<float*>(to)[0], 77.f);
  table.dealloc(d.handle, data, DVT_MEM_DEVICE, stream.handle);
  table.dealloc(d.handle, from, DVT_MEM_PINNED, stream.handle);
  table.dealloc(d.handle, to, DVT_MEM_PINNED, nullptr);
}

TEST(threads_streams_and_devices) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int k = 0; k < 6; ++k)
    threads.emplace_back([&, k] {
      Device &mine = device(k % 2), &other = device(1 - k % 2);
      Stream* own = mine.new_stream(0);
      Tensor x = array(mine, {5000}, Doubles(5000, k));
      const Tensor one = number(1);
      for (int i = 0; i < 40; ++i) {
        set_current_stream(mine, i % 3 ? own : nullptr);
        Tensor y = run("add", {&x, &one});
        set_current_stream(mine, i % 3 ? nullptr : own);
        Tensor z = run("subtract", {&y, &one});
        Tensor back = to_device(to_device(z, other), mine);
        update("add", y, {&one});
        if (!all(back, k) || !all(y, k + 2)) ++wrong;
        x = std::move(back);
      }
      set_current_stream(mine, nullptr);
      mine.free_stream(own);
    });
  for (std::thread& t : threads) t.join();
  CHECK_EQ(wrong.load(), 0);
}

CHECK_MAIN
