// Opens plugins and their devices.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <sstream>
#include <system_error>

#include "device/device.hpp"
#include "device/environment.hpp"
#include "device/fork.hpp"
#include "device/handshake.hpp"
#include "device/pool.hpp"
#include "device/probe_child.hpp"
#include "device/queues.hpp"
#include "device/services.hpp"
#include "device/timeline.hpp"
#include "device/toolchain.hpp"
#include "platform/platform.hpp"
#include "text.hpp"

namespace dovetail {
RowHooks row_hooks{};

namespace {
// Never destroyed: arrays may outlive every static object.
struct Registry {
  std::mutex loading;  // one backend at a time
  std::mutex mutex;    // short; of the lists
  std::vector<Backend*> backends;
  std::vector<Device*> devices;
};
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

std::string package_of(const std::string& name) { return name.empty() ? "the plugin" : "dovetail-" + name; }

// The loaded backend of this name, or nullptr; throws if it came from another library.
Backend* loaded(const std::string& name, const std::string& library) {
  for (Backend* b : backends()) {
    const bool same_library = !library.empty() && b->library == library;
    if (same_library && (name.empty() || name == b->name)) return b;
    if (b->name == name || same_library)
      refuse("a backend '" + b->name + "' is loaded already, from " +
                 (b->library.empty() ? "this process" : b->library) + ", and " +
                 (library.empty() ? "another" : library) + " is to be loaded as '" + name + "'",
             "uninstall one of the two, or choose one with DOVETAIL_BACKENDS");
  }
  return nullptr;
}

// The same for the backend's kernel packs.
const KernelPack* loaded_pack(const Backend& backend, const std::string& name, const std::string& library) {
  for (const KernelPack* pack : packs(backend)) {
    const bool same_library = pack->library == library;
    if (same_library && (name.empty() || name == pack->name)) return pack;
    if (pack->name == name || same_library)
      refuse("a kernel pack '" + pack->name + "' is loaded already, from " + pack->library + ", and " + library +
                 " is to be loaded as '" + name + "'",
             "uninstall one of the two, or choose one with DOVETAIL_KERNELS");
  }
  return nullptr;
}

// ---- devices ----------------------------------------------------------------------------------------------------

Device* open_device(Backend& backend, uint32_t ordinal, int index) {
  const dvt_backend& table = *backend.table;
  dvt_device* handle = nullptr;
  check(table.device_open(ordinal, &handle), "device_open");
  auto* device = new Device;
  device->index = index, device->backend = &backend, device->ordinal = ordinal, device->handle = handle;
  device->name = backend.name + ":" + std::to_string(ordinal);
  try {
    device->props.struct_size = sizeof device->props;
    check(table.device_props(handle, &device->props), "device_props");
    device->props.struct_size = sizeof device->props;
    check_props(device->props);
    device->dl = dl_device(device->props.dl_device_type, int32_t(ordinal));
    device->host_mapped = device->props.caps & DVT_CAP_HOST_MAPPED;
    if (device->host_mapped && device->props.mem_total)
      device->props.mem_total = std::min(device->props.mem_total, platform::host_memory());
    open_queues(*device);
  } catch (...) {
    table.device_close(handle);
    delete device;
    throw;
  }
  device->pool = new Pool(*device);
  record_device(*device);
  return device;
}

constexpr uint32_t kMostClaimed = 1024;  // more is memory that was never written

// Leaves out devices that fail to open, as long as one opens.
void open_devices(Backend& backend) {
  uint32_t count = 0;
  const dvt_status status = backend.table->device_count(&count);
  if (status == DVT_UNSUPPORTED) {
    backend.absence = take_failure(status).message;
    return;
  }
  check(status, "device_count");
  if (count > kMostClaimed)
    refuse("device_count: " + std::to_string(count) + " devices: expected at most " + std::to_string(kMostClaimed));
  std::vector<Error> errors;
  const size_t before = devices().size();
  for (uint32_t i = 0; i < count; ++i) {
    const size_t index = before + backend.devices.size();
    if (index >= kMaxDevices) {
      errors.emplace_back(ErrorKind::runtime,
                          backend.name + ":" + std::to_string(i) + " and the devices after it: more than " +
                              std::to_string(kMaxDevices) + " devices in this process",
                          "use fewer backends: set DOVETAIL_BACKENDS");
      break;
    }
    try {
      backend.devices.push_back(open_device(backend, i, int(index)));
    } catch (const Error& error) {
      const std::string cause = backend.name + ":" + std::to_string(i) + ": " + error.without_cure();
      errors.emplace_back(ErrorKind::runtime, cause, error.cure);
    }
  }
  if (backend.devices.empty() && !errors.empty()) throw errors[0];
  for (const Error& error : errors) log(Log::loader, 1, std::string("left out: ") + error.what());
}

// `open`: throws anything; a backend that cannot be loaded is a runtime error with a cure.
template <class Open>
void as_load_error(const std::string& name, Open open) {
  try {
    open();
  } catch (const Error& error) {
    if (!error.cure.empty()) refuse(error.without_cure(), error.cure);
    refuse(error.what(), "correct what it names, or reinstall " + package_of(name));
  } catch (const std::system_error& error) {  // thrown by a plugin in C++, most often by std::thread
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    refuse(std::string("it cannot start a thread: ") + error.what(),
           "allow this user more processes: see ulimit -u and the pids limit of the container");
  }
}

Backend& add(const std::string& name, const std::string& library, const dvt_backend* table,
             bool interpreted = false) {
  auto* backend = new Backend;
  backend->name = name, backend->library = library, backend->table = table;
  backend->interpreted = interpreted;
  backend->version = table->version ? table->version : "";
  try {
    as_load_error(name, [&] { open_devices(*backend); });
    // Again for each backend: what its devices have registered, such as the end of a driver, runs after the
    // shutdown.
    platform::at_exit([] { shutdown(); });
  } catch (...) {
    delete backend;
    throw;
  }
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  r.backends.push_back(backend);
  r.devices.insert(r.devices.end(), backend->devices.begin(), backend->devices.end());
  return *backend;
}

// ---- libraries --------------------------------------------------------------------------------------------------

void* open(const std::string& name, const std::string& library, const std::vector<std::string>& search) {
  platform::LibraryError error;
  void* opened = platform::open_library(library, search, error);
  if (opened) return opened;
  const auto cure = [&]() -> std::string {
    switch (error.kind) {
      case platform::LibraryError::wrong_machine:
        return "reinstall " + package_of(name) + " with the pip of this Python, or take the file for this machine";
      case platform::LibraryError::missing:
        return "install the library that it needs, or name its folder among those that the backend's entry point "
               "returns";
      default: return "reinstall or update " + package_of(name);
    }
  };
  refuse("it cannot be opened: " + error.text, cure());
}

void* symbol(const std::string& name, const std::string& library, void* opened, const char* wanted) {
  void* found = platform::find_symbol(opened, wanted);
  if (found) return found;
  const std::string stem = std::string(wanted).substr(0, std::string(wanted).size() - 1);
  for (char version = '2'; version <= '9'; ++version)
    if (platform::find_symbol(opened, (stem + version).c_str()))
      refuse(
          std::string("built for version ") + version + " of the device protocol, this dovetail speaks version 1",
          cure_for_versions(name));
  if (platform::find_symbol(opened, "dvt_kernels_v1"))
    refuse(library + " is a kernel pack", "open it with dovetail.load_kernels() for the backend that it is for");
  if (platform::find_symbol(opened, "dvt_backend_v1"))
    refuse(library + " is a backend", "open it with dovetail.load_backend()");
  refuse(library + " has no symbol " + wanted,
         "it is not a Dovetail plugin, or its build hides the symbol: see DVT_EXPORT");
}

// Opens the library, asks its probe, and lets `enter(symbol)` have the table: of a backend or of a kernel pack.
template <class Table, class Enter>
const Table* shake_hands(const std::string& name, const std::string& library,
                         const std::vector<std::string>& search, const dvt_host* host, const char* entry,
                         Enter enter) {
  void* opened = open(name, library, search);
  const auto probe = reinterpret_cast<decltype(&dvt_probe_v1)>(symbol(name, library, opened, "dvt_probe_v1"));
  void* const function = symbol(name, library, opened, entry);
  char reason[1024] = {};
  if (probe(reason, sizeof reason) <= 0) {
    reason[sizeof reason - 1] = '\0';
    refuse(std::string("it cannot be used on this machine: ") +
               (*reason ? cleaned(reason) : "its probe gives no reason"),
           "provide what it misses, or uninstall " + package_of(name));
  }
  const Table* table = nullptr;
  if (const dvt_status status = enter(function, host, &table)) {
    const Error error = make_error(status, entry, take_failure(status));
    refuse(error.what(), status == DVT_INVALID ? cure_for_versions(name)
                                               : "correct what it names, or reinstall " + package_of(name));
  }
  return table;
}

// ---- what does not keep a backend from working ------------------------------------------------------------------

// Restores how this thread rounds when it goes: libraries built with -ffast-math change that when they are opened,
// for NumPy and every other library of the process, too.
class FloatControlKept {
 public:
  ~FloatControlKept() { platform::set_float_control(before_); }
  bool changed() const { return platform::float_control() != before_; }

 private:
  const uint64_t before_ = platform::float_control();
};

std::vector<std::string> notes_on(const std::string& library, std::span<const dvt_kernel* const> rows,
                                  const FloatControlKept& floats) {
  std::vector<std::string> notes;
  if (floats.changed())
    notes.push_back(library +
                    " changed how this process rounds or flushes subnormal numbers when it was opened, which was "
                    "undone: expected a library that is linked without -ffast-math");
  if (platform::is_writable_by_all(library))
    notes.push_back("every user of this machine can change its library; chmod o-w '" + library + "'");
  for (std::string& note : row_hooks.notes(rows)) notes.push_back(std::move(note));
  return notes;
}

void check_path(const std::string& name, const std::string& library) {
  if (!platform::is_absolute(library))
    refuse("the path of its library is '" + library + "': expected an absolute path", "correct its entry point");
  if (!platform::is_file(library)) refuse("there is no file " + library, "reinstall " + package_of(name));
}
}  // namespace

Backend& load_backend(const std::string& name, const std::string& library, const std::vector<std::string>& search) {
  const auto begin = std::chrono::steady_clock::now();
  const GilRelease waiting;
  const std::lock_guard loading(registry().loading);
  check_path(name, library);
  if (Backend* there = loaded(name, library)) return *there;
  const ProbedOpening opening(name, library, search, nullptr);
  const FloatControlKept floats;
  const dvt_host* const host = new_host(name, library, search);
  const auto* table =
      shake_hands<dvt_backend>(name, library, search, host, "dvt_backend_v1",
                               [](void* entry, const dvt_host* host, const dvt_backend** out) {
                                 return reinterpret_cast<decltype(&dvt_backend_v1)>(entry)(host, out);
                               });
  const std::string own_name = check_table(table, name);
  rename_host(host, own_name);
  loaded(own_name, library);
  Backend& backend = add(own_name, library, table);
  backend.search = search;
  backend.notes = notes_on(library, {table->kernels, table->n_kernels}, floats);
  if (logs(Log::loader)) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    log(Log::loader, 2,
        backend.name + " " + backend.version + ": " + std::to_string(backend.devices.size()) + " device(s) in " +
            std::to_string(ms.count()) + " ms, from " + library);
  }
  return backend;
}

Backend& attach_backend(const std::string& name, const dvt_backend* table, const std::string& origin,
                        bool interpreted) {
  const GilRelease waiting;
  const std::lock_guard loading(registry().loading);
  const std::string own_name = check_table(table, name);
  loaded(own_name, "");
  return add(own_name, origin, table, interpreted);
}

const KernelPack& load_kernels(Backend& backend, const std::string& name, const std::string& library,
                               const std::vector<std::string>& search) {
  const GilRelease waiting;
  const std::lock_guard loading(registry().loading);
  check_path(name, library);
  if (const KernelPack* there = loaded_pack(backend, name, library)) return *there;
  const ProbedOpening opening(name, library, search, &backend);
  const FloatControlKept floats;
  const dvt_host* const host = new_host(name, library, search);
  const auto* table = shake_hands<dvt_kernel_pack>(
      name, library, search, host, "dvt_kernels_v1",
      [&](void* entry, const dvt_host* host, const dvt_kernel_pack** out) {
        return reinterpret_cast<decltype(&dvt_kernels_v1)>(entry)(host, backend.table, out);
      });
  const std::string own_name = check_pack(table, name);
  rename_host(host, own_name);
  loaded_pack(backend, own_name, library);
  for (const Device* device : backend.devices)
    for (uint64_t i = 0; i < table->n_kernels; ++i) row_hooks.check(*table->kernels[i], *device);
  auto* pack = new KernelPack{own_name, table->version ? table->version : "", library, table,
                              notes_on(library, {table->kernels, table->n_kernels}, floats)};
  for (Device* device : backend.devices) row_hooks.add(*device, {table->kernels, table->n_kernels});
  {
    const std::lock_guard guard(registry().mutex);
    backend.packs.push_back(pack);
  }
  log(Log::loader, 2,
      "kernel pack " + pack->name + " " + pack->version + ": " + std::to_string(table->n_kernels) + " rows for " +
          backend.name + ", from " + library);
  return *pack;
}

std::vector<const KernelPack*> packs(const Backend& backend) {
  const std::lock_guard guard(registry().mutex);
  return backend.packs;
}
std::vector<Backend*> backends() {
  const std::lock_guard guard(registry().mutex);
  return registry().backends;
}
std::vector<Device*> devices() {
  const std::lock_guard guard(registry().mutex);
  return registry().devices;
}
Device* find_device(const std::string& name) {
  const std::string full = name.find(':') == std::string::npos ? name + ":0" : name;
  for (Device* device : devices())
    if (device->name == full) return device;
  return nullptr;
}

// ---- the end ----------------------------------------------------------------------------------------------------

static bool drain(Device& device, double seconds) {
  const auto limit =
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  const auto until = std::chrono::steady_clock::now() + limit;
  const std::vector<Stream*> all = streams_of(device);
  return std::all_of(all.begin(), all.end(), [&](Stream* stream) { return stream->drain(until); });
}

static void close_device(Device& device) noexcept {
  const DeviceState state = device.state;
  if (state == DeviceState::closed || state == DeviceState::forked) return;
  try {
    static const double seconds = environment_seconds("DOVETAIL_EXIT_TIMEOUT", 10);  // for the queues of one device
    if (state == DeviceState::usable && !drain(device, seconds)) {
      std::ostringstream text;
      text << device.name << ": its work has not ended " << seconds
           << " s after the program; the process ends without closing the device. DOVETAIL_EXIT_TIMEOUT=SECONDS "
              "waits longer";
      log(Log::stream, 1, text.str());
      return device.make_unusable(DeviceState::closed);  // nothing that the device still uses is given back
    }
    if (state == DeviceState::usable && enabled(guarded_memory)) overruns(device);  // logs them
    if (state == DeviceState::usable) device.synchronize();
  } catch (const std::exception& e) {
    log(Log::stream, 1, device.name + ": a fault that no call had waited for: " + e.what());
  }
  device.pool->empty();
  device.make_unusable(DeviceState::closed);
  close_queues(device);
  device.backend->table->device_close(device.handle);
}

void close_backend(const Backend& backend) noexcept {
  for (Device* device : backend.devices) close_device(*device);
}

void shutdown() noexcept {
  interpreter = Interpreter{};  // it has ended
  end_toolchains();
  for (Device* device : devices()) close_device(*device);
}

// ---- fork -------------------------------------------------------------------------------------------------------

const std::vector<Device*>& loader_before_fork() {
  registry().mutex.lock();
  return registry().devices;
}
void loader_after_fork(bool in_child) {
  if (in_child) new (&registry().loading) std::mutex;  // another thread may have been loading
  registry().mutex.unlock();
}
}  // namespace dovetail
