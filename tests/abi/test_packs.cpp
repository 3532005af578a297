// Kernel packs: what load_kernels accepts, its errors for the rest, and concurrent calls.
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "check.hpp"
#include "device/plugins.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/recorder.hpp"

using plugins::load;
using plugins::path;
using namespace recorder;

namespace {
const KernelPack& add_pack(const std::string& file, Backend& backend, const std::string& name = "") {
  return load_kernels(backend, name, path(file), {});
}
const Op& twice() {
  static const Op& o =
      register_op({.name = "acme.double", .shape = "same", .dtype = "same", .params = {{"x", ParamKind::value}}});
  return o;
}
}  // namespace

TEST(calls_that_are_under_way) {
  Device& device = plugins::minimal();
  const Tensor x = array(device, {3});
  twice();
  std::atomic<bool> stop{false}, there{false};
  std::atomic<int> wrong{0}, calls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const bool had = there;
        try {
          wrong += values(run("acme.double", {&x})) != "0 2 4";
          ++calls;
        } catch (const Error& e) {
          wrong += had || e.kind != ErrorKind::not_implemented;
        }
        packs(*device.backend);
        kernel_table(device);
      }
    });
  add_pack("late_pack", *device.backend);
  there = true;
  while (calls < 100 && !wrong) std::this_thread::yield();
  stop = true;
  for (std::thread& t : threads) t.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(kernel_table(device)[0]->op, std::string("acme.double"));
}

TEST(one_library_and_one_name) {
  Backend& backend = load("sound");
  const KernelPack& pack = add_pack("sound_pack", backend);
  CHECK_EQ(pack.name, "acme_fast");
  CHECK_EQ(&add_pack("sound_pack", backend, "acme_fast"), &pack);
  CHECK_THROWS(Error, "a kernel pack 'acme_fast' is loaded already, from " + path("sound_pack"),
               add_pack("twin_pack", backend));
  CHECK_THROWS(Error, "; uninstall one of the two", add_pack("sound_pack", backend, "other"));
  CHECK_EQ(packs(backend).size(), 1u);
  CHECK_EQ(kernel_rows(*backend.devices[1], "dvt.sqrt").size(), 1u);
  add_pack("twin_pack", load("minimal"));  // for another backend the name is free
}

TEST(a_crash_stays_in_the_child) {
  Backend& backend = load("minimal");
  // Under an emulator more output comes between the two.
  CHECK_THROWS(Error, "crashed with SIGABRT in dvt_kernels_v1", add_pack("crashing_pack", backend));
  CHECK_THROWS(Error, "; reinstall or update it", add_pack("crashing_pack", backend));
  CHECK_THROWS(Error, " while its table was read", add_pack("nowhere_pack", backend));
}

// The rest of the device continues: such a row would come before those that every op needs.
TEST(rows_that_the_device_cannot_serve) {
  Backend& backend = load("sound_too");
  CHECK_THROWS(Error, "[copy] sound_too:0's kernel does not take strided operands: expected DVT_O_STRIDED; ",
               add_pack("copying_pack", backend));
  CHECK_THROWS(Error, "[acme.double] sound_too:0's kernel wants operands aligned to 1048576 bytes",
               add_pack("aligned_pack", backend));
  CHECK(packs(backend).empty());
  CHECK(kernel_rows(*backend.devices[0], "acme.double").empty());
}

TEST(libraries_that_are_no_packs) {
  CHECK_THROWS(Error, " is a backend; open it with dovetail.load_backend()", add_pack("minimal", load("minimal")));
  CHECK_THROWS(Error, " is a kernel pack; open it with dovetail.load_kernels()", load("sound_pack"));
}

TEST(backends_without_devices_or_a_file) {
  CHECK_EQ(add_pack("sound_pack", load("no_devices")).table->n_kernels, 2u);
  Backend& in_process = *plugin("packed", {}).device().backend;
  CHECK_EQ(add_pack("sound_pack", in_process).name, "acme_fast");
  CHECK_EQ(kernel_rows(*in_process.devices[0], "dvt.sqrt").size(), 1u);
}

TEST(in_a_forked_process) {
  const pid_t child = fork();
  if (!child) {
    bool ok = false;
    try {
      Backend& backend = load("sound_too");
      ok = add_pack("sound_pack", backend).name == "acme_fast";
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    _exit(!ok);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

CHECK_MAIN
