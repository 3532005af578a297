#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "check.hpp"
#include "device/plugins.hpp"

using namespace plugins;

namespace {
// The number of checks that fail in a forked child, or 100 if it crashes or hangs.
int failures_in_child(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (!child) {
    alarm(20);
    check::failures = 0;
    try {
      body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in the child: %s\n", e.what());
      ++check::failures;
    }
    _exit(check::failures);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

uint64_t sum_in_parallel() {
  std::atomic<uint64_t> sum{0};
  parallel_for(
      1000, 10,
      [](void* sum, uint64_t begin, uint64_t end, uint32_t) {
        for (uint64_t i = begin; i < end; ++i) *static_cast<std::atomic<uint64_t>*>(sum) += i;
      },
      &sum);
  return sum;
}

// Call before a fork that would leave a child a sanitizer's allocator locks: no thread holds one once queues
// are empty and the pool's threads have all started, which takes time on a busy machine.
void come_to_rest(Device& device) {
  if (check::forks_beside_threads) return;
  device.synchronize();
  std::atomic<uint32_t> here{0};
  parallel_for(
      num_threads(), 1,
      [](void* counter, uint64_t, uint64_t, uint32_t) {
        auto& here = *static_cast<std::atomic<uint32_t>*>(counter);
        for (++here; here < num_threads();) std::this_thread::yield();
      },
      &here);
}
}  // namespace

TEST(a_device_that_survives_works_in_the_child) {
  Device& device = minimal();
  set_num_threads(4);
  Vector x = filled(device, 1000, 1);
  Vector y = add(x, x);
  CHECK_EQ(sum_in_parallel(), 499500u);
  come_to_rest(device);
  for (int round = 0; round < 3; ++round)
    CHECK_EQ(failures_in_child([&] {
               CHECK(is(y, 2));
               Vector z = add(x, y);
               CHECK(is(z, 3));
               CHECK_EQ(sum_in_parallel(), 499500u);
               std::thread([] { CHECK_EQ(sum_in_parallel(), 499500u); }).join();
               empty_cache(device);
               come_to_rest(device);
               CHECK_EQ(failures_in_child([&] {
                          Vector w = add(z, z);
                          CHECK(is(w, 6));
                        }),
                        0);
             }),
             0);
  CHECK(is(y, 2));
}

TEST(forking_while_other_threads_are_at_work) {
  if (!check::forks_beside_threads) return;
  Device& device = minimal();
  set_num_threads(3);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        Vector x = filled(device, 500, 1);
        Vector y = add(x, x);
        sum_in_parallel();
      }
    });
  for (int round = 0; round < 30; ++round)
    CHECK_EQ(failures_in_child([&] {
               Vector x = filled(device, 500, 2);
               Vector y = add(x, x);
               CHECK(is(y, 4));
               CHECK_EQ(sum_in_parallel(), 499500u);
               memory_stats(device);
               empty_cache(device);
             }),
             0);
  stop = true;
  for (std::thread& t : threads) t.join();
}

TEST(a_device_that_does_not_survive_raises) {
  Device& device = queue().device;
  Vector x = filled(device, 100, 1), y = add(x, x);
  come_to_rest(device);
  CHECK_EQ(failures_in_child([&] {
             const char* why = "[queue:0] cannot be used in a forked process";
             CHECK_THROWS(Error, why, add(x, x));
             CHECK_THROWS(Error, why, run("add", *device.default_stream, {&x, &x}, x));
             CHECK_THROWS(Error, why, read(y));
             CHECK_THROWS(Error, why, device.synchronize());
             CHECK_THROWS(Error, why, host_access(*x.storage, false));
             CHECK_THROWS(Error, why, device.new_stream(0));
             empty_cache(device);
             {
               Vector gone = std::move(y);
             }
             Vector z = filled(minimal(), 100, 1);
             CHECK(is(z, 1));
           }),
           0);
  CHECK(is(y, 2));
  Vector z = add(y, y);
  CHECK(is(z, 4));
}

TEST(a_child_that_ends_orderly_leaves_the_parents_devices_alone) {
  Vector x = filled(queue().device, 100, 1);
  come_to_rest(queue().device);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (!child) {
    alarm(20);
    std::exit(0);  // runs the atexit handlers
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(is(x, 1));
}

CHECK_MAIN
