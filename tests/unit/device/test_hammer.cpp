// Threads that create, share, use and drop arrays on several streams at the same time: test_hammer [seconds],
// 3 by default. Meant for ThreadSanitizer, which checks the order in the plugin's worker threads.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "device/plugins.hpp"

using namespace plugins;

namespace {
std::atomic<bool> stop{false};
std::atomic<uint64_t> steps{0}, wrong{0};

// Arrays that all threads share; all elements of one are equal.
struct Shared {
  std::mutex mutex;
  struct Entry {
    Vector vector;
    float value;
  };
  std::vector<Entry> entries;

  Entry pick(std::mt19937& random) {
    const std::lock_guard guard(mutex);
    return entries[random() % entries.size()];
  }
  void put(std::mt19937& random, Entry entry) {
    const std::lock_guard guard(mutex);
    std::swap(entries[random() % entries.size()], entry);
  }
};

constexpr int kSizes[] = {3, 64, 1000, 5000};

void expect(bool ok, const char* what) {
  if (ok) return;
  if (++wrong <= 20) std::fprintf(stderr, "wrong: %s\n", what);
}

// The limit may be too low for a step at times.
template <class Step>
void within_limits(Device& device, Step step) {
  try {
    step();
  } catch (const Error& e) {
    if (e.kind != ErrorKind::memory) throw;
    set_memory_limit(device, 0);
  }
}

void compute(Shared& shared, Device& device, std::mt19937& random, Stream& stream) {
  Shared::Entry a = shared.pick(random), b = shared.pick(random);
  if (a.vector.n != b.vector.n) b = a;
  const float sum = a.value + b.value;
  if (random() % 3 == 0) expect(is(a.vector, a.value, stream), "an array's value");
  else if (sum > 1000) shared.put(random, {filled(device, a.vector.n, 1, stream), 1});
  else shared.put(random, {add(a.vector, b.vector, stream), sum});
}

// A private array, written in place by one stream after another.
void rewrite(Device& device, std::mt19937& random, const std::vector<Stream*>& streams) {
  Vector x = filled(device, kSizes[random() % 4], 1, *streams[random() % streams.size()]);
  Vector one = filled(device, x.n, 1, *streams[random() % streams.size()]);
  const int rounds = 1 + int(random() % 4);
  for (int i = 0; i < rounds; ++i) run("add", *streams[random() % streams.size()], {&x, &one}, x);
  expect(is(x, float(1 + rounds), *streams[random() % streams.size()]), "an array rewritten in place");
}

void fault(Device& device, std::mt19937& random, Stream& stream) {
  Vector x = filled(device, 8, 5, stream), k(device, 1, stream, DType::i64), out(device, 1, stream);
  write(k, std::vector<int64_t>{int64_t(random() % 8)}, stream);
  run("take", stream, {&x, &k}, out);
  expect(is(out, 5, stream), "take");
}

void loops(std::mt19937& random) {
  std::atomic<uint64_t> sum{0};
  const uint64_t n = 1 + random() % 3000;
  parallel_for(
      n, 16,
      [](void* sum, uint64_t begin, uint64_t end, uint32_t) {
        *static_cast<std::atomic<uint64_t>*>(sum) += end - begin;
      },
      &sum);
  expect(sum == n, "parallel_for");
}

void housekeeping(Device& device, std::mt19937& random) {
  switch (random() % 8) {
    case 0: empty_cache(device); break;
    case 1: reset_peak_memory(device); break;
    case 2: {
      const MemoryStats m = memory_stats(device);
      expect(m.in_use <= m.peak && m.in_use + m.cached == m.reserved, "statistics");
      break;
    }
    case 3: device.synchronize(); break;
    case 4: set_num_threads(1 + uint32_t(random() % 4)); break;
    case 5: set_memory_limit(device, memory_stats(device).reserved); break;  // from now on buffers change streams
    case 6: set_memory_limit(device, 0); break;
    default: device.free_stream(device.new_stream(0)); break;
  }
}

void work(Shared& shared, Device& device, unsigned seed, const std::vector<Stream*>& streams) {
  std::mt19937 random(seed);
  while (!stop)
    within_limits(device, [&] {
      Stream& stream = *streams[random() % streams.size()];
      switch (random() % 16) {
        case 0: rewrite(device, random, streams); break;
        case 1: fault(device, random, stream); break;
        case 2: loops(random); break;
        case 3: set_current_stream(device, &stream); break;
        case 4: {
          Event event(device);
          event.record(stream);
          event.wait(*streams[random() % streams.size()]);
          if (random() % 2) event.synchronize();
          else event.query();
          break;
        }
        case 5:
          if (random() % 8 == 0) housekeeping(device, random);
          break;
        case 6:
          if (random() % 32 == 0)  // a short-lived thread drops arrays of others
            std::thread([entry = shared.pick(random), &device, &stream]() mutable {
              within_limits(device, [&] {
                Vector sum = add(entry.vector, entry.vector, stream);
                expect(is(sum, 2 * entry.value, stream), "in a short-lived thread");
              });
            }).join();
          break;
        default: compute(shared, device, random, stream); break;
      }
      ++steps;
    });
}

void hammer(Device& device, double seconds, int n_threads) {
  std::vector<Stream*> streams{device.default_stream};
  for (int i = 0; i < 3; ++i) streams.push_back(device.new_stream(0));
  Shared shared;
  for (int i = 0; i < 24; ++i) shared.entries.push_back({filled(device, kSizes[i % 4], float(i)), float(i)});
  stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < n_threads; ++t) threads.emplace_back([&, t] { work(shared, device, unsigned(t), streams); });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& t : threads) t.join();
  shared.entries.clear();
  set_memory_limit(device, 0);
  device.synchronize();
  empty_cache(device);
  expect(memory_stats(device).reserved == 0, "everything was given back");
}
}  // namespace

int main(int n, char** args) {
  const double seconds = n > 1 ? std::atof(args[1]) : 3;
  try {
    hammer(queue().device, seconds * 0.8, 8);
    hammer(minimal(), seconds * 0.2, 8);
  } catch (const std::exception& e) {
    expect(false, e.what());
  }
  expect(queue().overlaps() == 0, "calls on a stream overlap");
  expect(queue().allocated() == 0, "the plugin still holds memory");
  std::printf("%llu steps, %llu wrong\n", static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(wrong));
  return wrong != 0;
}
