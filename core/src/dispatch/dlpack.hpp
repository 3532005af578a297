// DLPack in both directions; the struct of a tensor is in abi.h. https://dmlc.github.io/dlpack
#pragma once
#include <memory>
#include <optional>

#include "dispatch/invocation.hpp"

namespace dovetail::dlpack {
constexpr uint32_t kMajor = 1, kMinor = 2;
enum : uint64_t {
  kReadOnly = 1,
  kIsCopied = 2,
  kIsPadded = 4
};  // padded: each element of fewer than 8 bits has a byte
constexpr int kCudaHost = 3, kRocmHost = 11, kExtension = 12;  // device types

struct Version {
  uint32_t major, minor;
};
struct Managed {  // before 1.0: capsule "dltensor"
  DLTensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {  // capsule "dltensor_versioned"
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
static_assert(sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);

// The structs that a consumer gets. Their deleters delete this.
struct Exported {
  Tensor held;                    // either a share of the array's buffer
  std::unique_ptr<char[]> bytes;  // or a copy on the host
  Managed managed;
  ManagedVersioned versioned;
};
// What the export waits for, so that the consumer finds the elements written.
enum class Order : uint8_t {
  none,
  on_host,    // the work that writes the memory: all is done
  on_stream,  // work that is enqueued on native_stream() from now on runs behind it; without one as on_host
};
struct ExportOptions {
  std::optional<DLDevice> device{};  // none: where the array is
  std::optional<bool> copy{};
  bool versioned = true;  // false: memory cannot be marked as read-only, so only copy == false shares it
  Order order = Order::on_host;
  uint64_t shared_flags = 0;
};
// Throws Error(buffer).
std::unique_ptr<Exported> export_array(const Tensor&, const ExportOptions&);

// A row-major array with undefined elements that its consumer writes.
std::unique_ptr<Exported> export_new(DType, std::span<const int64_t> shape, Device&);

// A tensor of another library. Throws Error(buffer) for another major version.
struct Foreign {
  explicit Foreign(Managed* m) : managed(m), tensor(&m->tensor) {}
  explicit Foreign(ManagedVersioned* m);
  void* managed;
  DLTensor* tensor;
  bool versioned = false;
  bool padded = false;
  bool taken = false;  // set once the runtime owns `managed` and deletes it
};
// An array on `to`. `home` is the device that owns the tensor's memory; nullptr: plain memory of the host. Shared
// memory stays the producer's. Throws Error(buffer) where the tensor cannot be had without a copy and `copy` is
// false, or not at all.
Tensor import_array(Foreign&, Device* home, Device& to, std::optional<bool> copy);

// The dtype that other libraries know under this name. Throws Error(buffer).
DType dtype_named(DLDataType);
// The current stream as the device's own library names it, for other libraries to enqueue work on; nullopt: it has
// none, or the device's memory is the host's.
std::optional<void*> native_stream(Device&);
// The device that other libraries know under this name, `first` if it is one of several; or nullptr.
Device* home_of(DLDevice, Device& first);
}  // namespace dovetail::dlpack
