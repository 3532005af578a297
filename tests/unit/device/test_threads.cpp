#include "device/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "device/device.hpp"

using namespace dovetail;

namespace {
template <class F>
void loop(uint64_t n, uint64_t grain, F f) {
  parallel_for(
      n, grain,
      [](void* ctx, uint64_t begin, uint64_t end, uint32_t worker) { (*static_cast<F*>(ctx))(begin, end, worker); },
      &f);
}

// Every index once, every chunk at least `grain`, worker indices within bounds.
void covers(uint64_t n, uint64_t grain) {
  std::vector<std::atomic<int>> seen(n);
  std::atomic<bool> small{false}, stranger{false};
  loop(n, grain, [&](uint64_t begin, uint64_t end, uint32_t worker) {
    if (end - begin < std::min(grain, n)) small = true;
    if (worker >= num_threads()) stranger = true;
    for (uint64_t i = begin; i < end; ++i) ++seen[i];
  });
  CHECK(std::all_of(seen.begin(), seen.end(), [](auto& s) { return s == 1; }));
  CHECK(!small);
  CHECK(!stranger);
}
}  // namespace

TEST(every_index_once) {
  for (const uint32_t threads : {1u, 2u, 5u, 16u}) {
    set_num_threads(threads);
    CHECK_EQ(num_threads(), threads);
    for (const uint64_t n : {0u, 1u, 2u, 7u, 64u, 1000u, 4097u})
      for (const uint64_t grain : {0u, 1u, 3u, 64u, 5000u}) covers(n, grain);
  }
}

TEST(several_threads_take_part) {
  set_num_threads(3);
  std::atomic<int> together{0}, most{0};
  loop(12, 1, [&](uint64_t, uint64_t, uint32_t) {
    most = std::max(most.load(), ++together);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    --together;
  });
  CHECK(most >= 2 && most <= 3);
  set_num_threads(2);  // the third worker does not take part
  for (int round = 0; round < 100; ++round) covers(100, 1);
}

TEST(nested_calls_run_inline) {
  set_num_threads(4);
  std::atomic<uint64_t> sum{0};
  loop(8, 1, [&](uint64_t begin, uint64_t end, uint32_t) {
    const auto me = std::this_thread::get_id();
    for (uint64_t i = begin; i < end; ++i)
      loop(100, 1, [&](uint64_t from, uint64_t to, uint32_t worker) {
        if (std::this_thread::get_id() != me || worker) sum += 1'000'000;
        sum += to - from;
      });
  });
  CHECK_EQ(sum.load(), 800u);
}

TEST(concurrent_calls_all_complete) {
  set_num_threads(4);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<uint64_t> sum{0};
        loop(1000, 10, [&](uint64_t begin, uint64_t end, uint32_t) {
          for (uint64_t i = begin; i < end; ++i) sum += i;
        });
        wrong += sum != 499500;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(an_exception_comes_out_of_the_call) {
  set_num_threads(4);
  for (int round = 0; round < 20; ++round)
    CHECK_THROWS(std::runtime_error, "chunk", loop(100, 1, [&](uint64_t begin, uint64_t, uint32_t) {
                   if (begin >= 10) throw std::runtime_error("chunk");
                 }));
  covers(100, 1);
}

TEST(a_kernels_scratch_is_large_enough_whatever_others_set) {
  set_num_threads(2);
  const uint32_t limit = num_threads();
  std::thread([] { set_num_threads(8); }).join();
  std::atomic<uint32_t> most{0};
  loop(64, 1, [&](uint64_t, uint64_t, uint32_t worker) {
    most = std::max(most.load(), worker);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  CHECK(most < limit);
  CHECK_EQ(num_threads(), 8u);
}

TEST(invalid_numbers_of_threads) {
  CHECK_THROWS(Error, "[set_num_threads] expected 1 to 1024 threads, got 0", set_num_threads(0));
  CHECK_THROWS(Error, "got 1025", set_num_threads(1025));
}

TEST(cost_of_an_empty_loop) {
  set_num_threads(2);
  std::vector<double> us;
  for (int i = 0; i < 2000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    loop(1000, 1, [](uint64_t, uint64_t, uint32_t) {});
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(us.begin(), us.end());
  std::printf("empty parallel_for on 2 threads: median %.2f us, 90 %% %.2f us\n", us[1000], us[1800]);
}

CHECK_MAIN
