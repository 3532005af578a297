#include "device/services.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <forward_list>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "device/log.hpp"
#include "device/threads.hpp"
#include "device/timeline.hpp"
#include "device/toolchain.hpp"
#include "platform/paths.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
struct Host : dvt_host {
  std::atomic<const std::string*> name;  // of the plugin in logs
  std::string path;
  std::vector<std::string> search;
  std::vector<const char*> search_list;  // ends with nullptr
};
const std::string& name_of(const dvt_host* self) { return *static_cast<const Host*>(self)->name.load(); }

thread_local Failure failure;

// A plugin's text in a line of the log.
std::string on_one_line(const char* text) {
  std::string line = cleaned(text ? text : "");
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

dvt_status fail(const dvt_host* self, dvt_status code, uint64_t correlation_id, const char* file, int line,
                const char* message) {
  failure = {code, correlation_id, message ? cleaned(message) : ""};
  if (logs(Log::plugin, 3))
    log(Log::plugin, 3,
        name_of(self) + ": status " + std::to_string(code) + " at " + (file ? on_one_line(file) : "?") + ":" +
            std::to_string(line) + ": " + on_one_line(message));
  return code;
}

void log_message(const dvt_host* self, int level, const char* message) {
  // The protocol counts from debug up, the runtime's logs from warnings down.
  const int ours = level <= 0 ? 3 : level == 1 ? 2 : 1;
  if (logs(Log::plugin, ours)) log(Log::plugin, ours, name_of(self) + ": " + on_one_line(message));
}

uint32_t count_threads(const dvt_host*) { return num_threads(); }

void run_parallel(const dvt_host*, uint64_t n, uint64_t grain, void (*fn)(void*, uint64_t, uint64_t, uint32_t),
                  void* ctx) {
  parallel_for(n, grain, fn, ctx);
}

void trace(const dvt_host* self, uint64_t correlation_id, const char* name, uint64_t begin, uint64_t end) {
  if (recording()) record_traced(name_of(self), correlation_id, name ? on_one_line(name) : "?", begin, end);
  if (!logs(Log::trace, 2)) return;
  char text[128];
  std::snprintf(text, sizeof text, " call %llu: %.3f us", static_cast<unsigned long long>(correlation_id),
                double(end - begin) / 1e3);
  log(Log::trace, 2, name_of(self) + ": " + (name ? on_one_line(name) : "?") + text);
}

const void* extension(const dvt_host* self, const char* group, uint32_t version) {
  const std::string_view asked = group;
  if (asked == "dovetail.search" && version == DVT_X_SEARCH)
    return static_cast<const Host*>(self)->search_list.data();
  if (asked == "dovetail.toolchain" && version == DVT_X_TOOLCHAIN) return &toolchain_service();
  return nullptr;
}

ErrorKind kind_of(dvt_status status) {
  switch (status) {
    case DVT_UNSUPPORTED: return ErrorKind::not_implemented;
    case DVT_INVALID: return ErrorKind::value;
    case DVT_OOM: return ErrorKind::memory;
    case DVT_DEVICE_LOST: return ErrorKind::device_lost;
    case DVT_INDEX: return ErrorKind::index;
    default: return ErrorKind::runtime;
  }
}

std::string text_of(dvt_status status) {
  switch (status) {
    case DVT_UNSUPPORTED: return "not supported by this device";
    case DVT_INVALID: return "the device refuses the call as invalid";
    case DVT_OOM: return "the device is out of memory";
    case DVT_DEVICE_LOST: return "the device was lost";
    case DVT_INDEX: return "an index is out of range";
    default: return "the device failed with status " + std::to_string(status) + " and gives no reason";
  }
}
}  // namespace

const dvt_host* new_host(const std::string& name, const std::string& library,
                         const std::vector<std::string>& search) {
  // They live as long as the plugins: for ever.
  static std::mutex mutex;
  static std::deque<Host>& hosts = *new std::deque<Host>;
  const std::lock_guard guard(mutex);
  Host* host = &hosts.emplace_back();
  rename_host(host, name.empty() ? platform::from_path(platform::to_path(library).stem()) : name);
  host->path = library, host->search = search;
  for (const std::string& folder : host->search) host->search_list.push_back(folder.c_str());
  host->search_list.push_back(nullptr);
  host->struct_size = sizeof(dvt_host);
  host->abi_major = DVT_ABI_MAJOR, host->abi_minor = DVT_ABI_MINOR, host->abi_draft = DVT_ABI_DRAFT;
  host->library_path = host->path.c_str();
  host->fail = fail, host->log = log_message, host->num_threads = count_threads;
  host->parallel_for = run_parallel, host->trace = trace, host->extension = extension;
  return host;
}

void rename_host(const dvt_host* host, const std::string& name) {
  // A thread of the plugin may be logging under the old name: names live as long as the host, which is for ever.
  static std::mutex mutex;
  static std::forward_list<std::string>& names = *new std::forward_list<std::string>;
  const std::lock_guard guard(mutex);
  const_cast<Host*>(static_cast<const Host*>(host))->name = &names.emplace_front(name);
}

Failure take_failure(dvt_status status) {
  Failure taken = std::exchange(failure, Failure{});
  if (taken.status != status) taken = Failure{status, 0, {}};
  return taken;
}

Error make_error(dvt_status status, const std::string& what, const Failure& failure) {
  std::string text = failure.message.empty() ? text_of(status) : failure.message;
  if (!what.empty() && text[0] != '[') text = what + (what.back() == ']' ? " " : ": ") + text;
  return Error(kind_of(status), text);
}

void throw_status(dvt_status status, const std::string& what) {
  throw make_error(status, what, take_failure(status));
}
}  // namespace dovetail
