// Backends, devices, quarantine.
#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>

#include "api/api.hpp"
#include "platform/paths.hpp"
#include "platform/platform.hpp"
#include "text.hpp"

namespace dovetail::api {
namespace {
struct Failed {
  std::string name, library, reason, cure;
};
std::mutex mutex;
auto& failed = *new std::deque<Failed>;   // for ever: callers have pointers into it
auto& listed = *new std::vector<size_t>;  // of these, what is still true

void forget(const std::string& library) {
  const std::lock_guard guard(mutex);
  std::erase_if(listed, [&](size_t i) { return failed[i].library == library; });
}
void remember(Failed f) {
  forget(f.library);
  const std::lock_guard guard(mutex);
  failed.push_back(std::move(f));
  listed.push_back(failed.size() - 1);
}

void load(const char* name, const std::string& given, const char* const* search) {
  const std::string library =
      platform::from_path(std::filesystem::absolute(platform::to_path(given)).lexically_normal());
  std::vector<std::string> folders;
  if (!search) folders.push_back(platform::from_path(platform::to_path(library).parent_path()));
  for (; search && *search; ++search) folders.emplace_back(*search);
  try {
    const Backend& backend = load_backend(name ? name : "", library, folders);
    if (backend.devices.empty())
      remember({backend.name, library, backend.absence.empty() ? "it found no device" : backend.absence, ""});
    else forget(library);
  } catch (const Error& e) {
    remember({name ? name : "", library, e.what(), e.cure});
    throw;
  } catch (const std::exception& e) {
    remember({name ? name : "", library, e.what(), ""});
    throw;
  }
}

bool is_plugin(const std::string& name) {
  const std::string any = platform::library_name("dovetail_*");
  const size_t star = any.find('*');
  return name.size() >= any.size() && name.starts_with(any.substr(0, star)) && name.ends_with(any.substr(star + 1));
}

std::vector<std::string> plugins_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(platform::to_path(folder))) {
    const std::string path = platform::from_path(entry.path());
    if (is_plugin(platform::from_path(entry.path().filename())) && platform::is_file(path)) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void load_or_quarantine(const std::string& library) {
  try {
    load(nullptr, library, nullptr);
  } catch (const std::exception&) {
  }
}

const char* text_of(const std::string& s) { return s.c_str(); }
}  // namespace
}  // namespace dovetail::api

using namespace dovetail;
using namespace dovetail::api;

dvr_status dvr_load_backend(const char* name, const char* library, const char* const* search) {
  return guarded("load_backend", [&] {
    expect(library, "the library's path");
    load(name, library, search);
  });
}

dvr_status dvr_load_backends(const char* const* paths, uint32_t n_paths) {
  return guarded("load_backends", [&] {
    if (n_paths) expect(paths, "the list of paths");
    for (uint32_t i = 0; i < n_paths; ++i) {
      const std::string path = &expect(paths[i], "a path");
      if (!platform::is_folder(path) && !platform::is_file(path))
        throw Error(ErrorKind::value, "there is no file or folder " + path);
    }
    for (uint32_t i = 0; i < n_paths; ++i) {
      if (!platform::is_folder(paths[i])) load_or_quarantine(paths[i]);
      else
        for (const std::string& library : plugins_in(paths[i])) load_or_quarantine(library);
    }
  });
}

uint32_t dvr_quarantine(dvr_quarantined* out, uint32_t room) {
  const std::lock_guard guard(mutex);
  const uint32_t size = out ? out->struct_size : 0;  // of the caller's entries
  for (uint32_t i = 0; size >= sizeof(uint32_t) && i < listed.size() && i < room; ++i) {
    const Failed& f = failed[listed[i]];
    const dvr_quarantined made{size, 0, text_of(f.name), text_of(f.library), text_of(f.reason), text_of(f.cure)};
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * size, &made, std::min<size_t>(size, sizeof made));
  }
  return uint32_t(listed.size());
}

uint32_t dvr_devices(dvr_device** out, uint32_t room) {
  const std::vector<Device*> all = devices();
  for (uint32_t i = 0; out && i < all.size() && i < room; ++i) out[i] = reinterpret_cast<dvr_device*>(all[i]);
  return uint32_t(all.size());
}

dvr_device* dvr_find_device(const char* name) {
  return name ? reinterpret_cast<dvr_device*>(find_device(name)) : nullptr;
}

dvr_status dvr_get_device_info(dvr_device* device, dvr_device_info* out) {
  return guarded("get_device_info", [&] {
    Device& d = to(device);
    uint64_t free_bytes = 0, total = 0;
    if (DVT_HAS(d.backend->table, dvt_backend, mem_info))
      d.check(d.backend->table->mem_info(d.handle, &free_bytes, &total), "[get_device_info]");
    dvr_device_info info{};
    info.kind = d.props.kind, info.caps = d.props.caps, info.ordinal = d.ordinal;
    info.name = d.name.c_str(), info.backend = d.backend->name.c_str();
    info.model = d.props.name, info.arch = d.props.arch;
    info.dl_device_type = d.props.dl_device_type, info.dl_device_id = d.props.dl_device_id;
    info.has_streams = d.has_streams(), info.host_mapped = d.host_mapped;
    info.mem_total = d.props.mem_total, info.mem_free = free_bytes;
    const dvt_backend* const table = d.backend->table;
    info.build = DVT_HAS(table, dvt_backend, build_info) ? table->build_info : "";
    put_info(info, out);
  });
}

dvr_status dvr_synchronize(dvr_device* d) {
  return guarded("synchronize", [&] { to(d).synchronize(); });
}

dvr_status dvr_device_reset(dvr_device* d) {
  return guarded("device_reset", [&] { to(d).reset(); });
}

dvr_status dvr_supports(dvr_device* d, const char* name, DLDataType dtype, uint32_t* how) {
  return guarded("supports", [&] {
    const auto found = support(op(&expect(name, "the op's name")), to(d), to_dtype(dtype));
    const bool served = found && found->mode != Plan::host_fallback;
    expect(how, "the result") = !served                              ? DVR_UNSUPPORTED
                                : found->mode == Plan::decomposition ? DVR_DECOMPOSITION
                                                                     : DVR_KERNEL;
  });
}

dvr_status dvr_set_fallback(uint32_t mode) {
  return guarded("set_fallback", [&] {
    if (mode > DVR_FALLBACK_ALLOW)
      throw Error(ErrorKind::value, "mode " + std::to_string(mode) + ": expected one of DVR_FALLBACK_*");
    set_fallback(mode == DVR_FALLBACK_ERROR  ? Fallback::error
                 : mode == DVR_FALLBACK_WARN ? Fallback::warn
                                             : Fallback::allow);
  });
}
