// Loaded backends and their devices.
#pragma once
#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/storage.hpp"
#include "dovetail/abi.h"
#include "error.hpp"
#include "types/dtype.hpp"

namespace dovetail {
struct Backend;
struct Pool;    // pool.hpp
struct Queues;  // stream.cpp: all streams and spare events

// <dlpack/dlpack.h>, where abi.h finds it, has an enumeration for the type.
constexpr DLDevice dl_device(int type, int id) { return {static_cast<decltype(DLDevice::device_type)>(type), id}; }

enum class DeviceState : uint8_t {
  usable,
  lost,    // the plugin returned DVT_DEVICE_LOST: until reset()
  forked,  // this process is a fork, and the backend's driver does not survive that
  closed,  // the process is ending
};

struct Device {
  int index = 0;  // process-wide, dense
  Backend* backend = nullptr;
  uint32_t ordinal = 0;  // the backend's own index
  std::string name;      // "cpu:0"
  dvt_device* handle = nullptr;
  dvt_props props{};
  DLDevice dl{};             // what kernels see: {props.dl_device_type, ordinal}
  bool host_mapped = false;  // the host may read and write `data`
  // No streams: work is done when run returns, without Stream::lock() and without releasing the interpreter's lock.
  // False for a device that became unusable, so that the next call takes Stream::lock(), which throws, and for a
  // device of an interpreted backend.
  std::atomic<bool> synchronous{true};
  std::atomic<DeviceState> state{DeviceState::usable};
  std::atomic<uint64_t> resets{0};  // after each of which it is undefined what the memory holds
  Stream* default_stream = nullptr;
  Pool* pool = nullptr;
  Queues* queues = nullptr;

  bool has_streams() const;
  // A stream of the user. Once the device has as many as props.max_streams, several of the user's share one.
  Stream* new_stream(int priority);
  void free_stream(Stream*);
  void synchronize();  // all streams; throws the first fault that was found
  void reset();        // after the device was lost; what its memory holds is undefined
  // Throws the error of a device that cannot be used, where it cannot.
  void check_usable() const {
    if (state.load(std::memory_order_relaxed) != DeviceState::usable) [[unlikely]]
      throw_unusable();
  }
  [[noreturn]] void throw_unusable() const;
  void make_unusable(DeviceState);
  // Throws like throw_status, and marks a lost device as lost.
  [[noreturn]] void fail(dvt_status status, const std::string& what);
  void check(dvt_status status, const char* what) {
    if (status != DVT_OK) [[unlikely]]
      fail(status, what);
  }
};

// Copies compact tensors of one shape and dtype; either side may be on the host (device_type kDLCPU). Complete on
// return where one side is host memory; faults found on the way to the host are thrown.
void copy_bytes(Device& device, Stream& stream, const DLTensor& dst, const DLTensor& src);

// Rows that another wheel adds to a backend.
struct KernelPack {
  std::string name, version, library;
  const dvt_kernel_pack* table = nullptr;
  std::vector<std::string> notes;
};

struct Backend {
  std::string name, version, library;
  std::vector<std::string> search;  // folders of what the library needs
  const dvt_backend* table = nullptr;
  // Its functions run in the embedding language: any of them may release the interpreter's lock.
  bool interpreted = false;
  std::vector<Device*> devices;
  std::string absence;                   // the plugin's reason for having no device
  std::vector<std::string> notes;        // problems that do not keep it from working
  std::vector<const KernelPack*> packs;  // changes while the loader's lock is held
};

// Kernel rows belong to dispatch, which sets these functions for the loader.
struct RowHooks {
  // Throws Error(runtime) where the row asks for what no row may ask of this device.
  void (*check)(const dvt_kernel&, const Device&);
  void (*add)(Device&, std::span<const dvt_kernel* const>);
  // Problems of rows that do not keep the others from working.
  std::vector<std::string> (*notes)(std::span<const dvt_kernel* const>);
};
extern RowHooks row_hooks;
constexpr std::string_view kOwnEngine = "own";    // of rows that name none
constexpr std::string_view kMathEngine = "math";  // the op's decomposition

// ---- loading ----------------------------------------------------------------------------------------------------

// Opens the plugin at `library` (absolute path) in this process, shakes hands and opens its devices; a name of ""
// takes the plugin's own. A library that this machine has not seen is first opened by `dovetail-probe` in a child
// process. `search`: folders that are searched for the libraries it depends on. Throws Error(runtime) with a cure;
// the caller then quarantines the backend. Loading the same library under the same name again gives
// the same.
Backend& load_backend(const std::string& name, const std::string& library, const std::vector<std::string>& search);
// The same for a table that is in this process already. `origin`: what it was made from, in place of a library.
Backend& attach_backend(const std::string& name, const dvt_backend* table, const std::string& origin = "",
                        bool interpreted = false);
// Opens a kernel pack in the same way, and gives its rows to every device of the backend.
const KernelPack& load_kernels(Backend& backend, const std::string& name, const std::string& library,
                               const std::vector<std::string>& search);
std::vector<const KernelPack*> packs(const Backend&);
// A table of host services for a plugin that does not come from load_backend. `name`: for logs; "" takes the
// library's file name.
const dvt_host* new_host(const std::string& name, const std::string& library,
                         const std::vector<std::string>& search = {});
void rename_host(const dvt_host*, const std::string& name);
std::vector<Backend*> backends();
std::vector<Device*> devices();
Device* find_device(const std::string& name);  // "cpu" is "cpu:0"; nullptr if there is none
// Drains all queues and closes all devices. Runs when the process exits; nothing can run afterwards.
void shutdown() noexcept;
void close_backend(const Backend&) noexcept;  // the same for the devices of one

// Throws the Error of a plugin's status, with the message that it gave to host->fail on this thread. `what` names
// the caller:
// "[take]". Where the device is known, Device::fail is better.
[[noreturn]] void throw_status(dvt_status status, const std::string& what);
inline void check(dvt_status status, const char* what) {
  if (status != DVT_OK) [[unlikely]]
    throw_status(status, what);
}
}  // namespace dovetail
