// The devices of these tests, tests/abi/minimal.c and queue.cpp, and float arrays on them.
#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"

// With a sanitizer, the tests still fork while threads run and allocate more memory than there is.
extern "C" {
__attribute__((used)) inline const char* __tsan_default_options() {
  return "die_after_fork=0:allocator_may_return_null=1";
}
__attribute__((used)) inline const char* __asan_default_options() { return "allocator_may_return_null=1"; }
}

namespace plugins {
using namespace dovetail;

// The test programs and the folder with the plugins are in the same folder.
inline std::string path(const std::string& name) {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / "plugins" / (name + ".so")).string();
}

// The loader's cache goes to a folder of this process.
inline const std::string& cache() {
  static const struct Folder {
    std::string name = (std::filesystem::temp_directory_path() / "dovetail-cache-XXXXXX").string();
    const int owner = getpid();
    Folder() {
      if (!mkdtemp(name.data())) std::abort();
      setenv("XDG_CACHE_HOME", name.c_str(), 1);
    }
    ~Folder() {
      if (getpid() == owner) std::filesystem::remove_all(name);
    }
  } folder;
  return folder.name;
}

inline Backend& load(const std::string& name) {
  cache();
  return load_backend(name, path(name), {});
}
inline Device& minimal() {
  static Device& device = *load("minimal").devices.at(0);
  return device;
}

template <class F>
F* knob(const char* name) {
  void* library = dlopen(path("queue").c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* symbol = library ? dlsym(library, name) : nullptr;
  if (!symbol) std::abort();
  return reinterpret_cast<F*>(symbol);
}
struct Queue {
  Device& device;
  void (*hold)(int) = knob<void(int)>("queue_hold");
  void (*delay_us)(uint32_t) = knob<void(uint32_t)>("queue_delay_us");
  void (*lose)() = knob<void()>("queue_lose");
  void (*limit)(uint64_t) = knob<void(uint64_t)>("queue_limit");
  uint64_t (*allocated)() = knob<uint64_t()>("queue_allocated");
  uint64_t (*overlaps)() = knob<uint64_t()>("queue_overlaps");
  uint64_t (*waits)() = knob<uint64_t()>("queue_waits");
};
inline Queue& queue() {
  static Queue queue{*load("queue").devices.at(0)};
  return queue;
}
// Delays the next work on `stream` by this time.
inline void stall(Stream& stream, int ms) {
  const auto order = stream.lock();
  static thread_local int duration;
  duration = ms;
  stream.device.backend->table->streams->host_fn(
      stream.handle, [](void* ms) { usleep(useconds_t(reinterpret_cast<intptr_t>(ms) * 1000)); },
      reinterpret_cast<void*>(intptr_t(duration)));
}

// A row-major array of floats (or of int64, for indices).
struct Vector {
  Storage* storage;
  int64_t n, stride = 1;
  DLDataType type = info(DType::f32).dl;

  Vector(Device& device, int64_t n, Stream& stream, DType dtype = DType::f32)
      : storage(allocate(device, device.index, stream, uint64_t(n) * info(dtype).bytes())),
        n(n),
        type(info(dtype).dl) {}
  Vector(Device& device, int64_t n, DType dtype = DType::f32) : Vector(device, n, current_stream(device), dtype) {}
  explicit Vector(Storage* storage, int64_t n) : storage(storage), n(n) {}
  Vector(Vector&& o) noexcept : storage(std::exchange(o.storage, nullptr)), n(o.n), type(o.type) {}
  Vector(const Vector& o) : storage(o.storage), n(o.n), type(o.type) { retain(storage); }
  Vector& operator=(Vector o) noexcept {
    std::swap(storage, o.storage);
    n = o.n, type = o.type;
    return *this;
  }
  ~Vector() {
    if (storage) release(storage);
  }
  DLTensor view() { return {storage->data, storage->device->dl, 1, type, &n, &stride, 0}; }
  Device& device() { return *storage->device; }
};

template <class T>
void write(Vector& to, const std::vector<T>& values, Stream& stream) {
  use(*to.storage, stream, true);
  DLTensor host = to.view();
  host.data = const_cast<T*>(values.data());
  host.device = dl_device(1 /* kDLCPU */, 0);
  copy_bytes(to.device(), stream, to.view(), host);
}
inline Vector filled(Device& device, int64_t n, float value, Stream& stream) {
  Vector v(device, n, stream);
  write(v, std::vector<float>(size_t(n), value), stream);
  return v;
}
inline Vector filled(Device& device, int64_t n, float value) {
  return filled(device, n, value, current_stream(device));
}
// Waits, and throws the device's error.
inline std::vector<float> read(Vector& from, Stream& stream) {
  std::vector<float> values(size_t(from.n), -1.f);
  use(*from.storage, stream, false);
  DLTensor host = from.view();
  host.data = values.data();
  host.device = dl_device(1 /* kDLCPU */, 0);
  copy_bytes(from.device(), stream, host, from.view());
  return values;
}
inline std::vector<float> read(Vector& from) { return read(from, current_stream(from.device())); }
// Are all elements `value`?
inline bool is(Vector& v, float value, Stream& stream) {
  for (const float f : read(v, stream))
    if (f != value) return false;
  return true;
}
inline bool is(Vector& v, float value) { return is(v, value, current_stream(v.device())); }

// Runs an op's row in the way dispatch does.
inline void run(const char* op, Stream& stream, std::vector<Vector*> in, Vector& out) {
  Device& device = stream.device;
  const dvt_backend& table = *device.backend->table;
  const dvt_kernel* row = nullptr;
  for (uint64_t i = 0; i < table.n_kernels && !row; ++i)
    if ("dvt." + std::string(op) == table.kernels[i]->op) row = table.kernels[i];
  std::vector<DLTensor> views;
  std::vector<const DLTensor*> pointers;
  for (Vector* v : in) views.push_back(v->view());
  for (const DLTensor& v : views) pointers.push_back(&v);
  const DLTensor result = out.view(), *results[] = {&result};
  dvt_call call{};
  call.struct_size = sizeof call, call.n_in = uint32_t(in.size()), call.n_out = 1;
  call.in = pointers.data(), call.out = results;
  for (Vector* v : in) use(*v->storage, stream, false);
  use(*out.storage, stream, true);
  const auto order = stream.lock();
  if (!device.synchronous) call.stream = stream.handle, call.correlation_id = stream.correlate(op);
  const std::string who = "[" + std::string(op) + "]";
  device.check(row->run(device.handle, &call), who.c_str());
}
inline Vector add(Vector& a, Vector& b, Stream& stream) {
  Vector out(a.device(), a.n, stream);
  run("add", stream, {&a, &b}, out);
  return out;
}
inline Vector add(Vector& a, Vector& b) { return add(a, b, current_stream(a.device())); }
}  // namespace plugins
