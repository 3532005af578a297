// One thread looks requests up and talks to the worker. It starts with the first request and ends, with the worker,
// when there was none for a while.
#include "device/toolchain.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "device/environment.hpp"
#include "device/fork.hpp"
#include "device/image.hpp"
#include "device/interpreter.hpp"
#include "device/log.hpp"
#include "device/object_cache.hpp"
#include "device/trusted_images.hpp"
#include "error.hpp"
#include "platform/paths.hpp"
#include "sha256.hpp"
#include "text.hpp"

struct dvt_code {
  std::shared_ptr<const dovetail::Code> code;
};

namespace dovetail {
namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kIdle{10};                // then the worker and the thread end
constexpr std::chrono::milliseconds kBetweenLooks{250};  // at whether another process wants the idle worker's place
constexpr std::chrono::milliseconds kBetweenTries{50};   // while other processes have what this one needs
constexpr std::chrono::seconds kPatience{60};            // with one that makes the same object
using Ready = void (*)(void*, dvt_code*, const char*);

struct Request {
  std::string tool, text;
  Ready ready;
  void* ctx;
  Clock::time_point begin = Clock::now();
  std::string key = {};   // of the cache; set by the thread
  bool answered = false;  // guarded by the service's mutex
};
using Asked = std::shared_ptr<Request>;

// name=word word...:name=...
std::map<std::string, Tool> tools_of(const char* text) {
  std::map<std::string, Tool> tools;
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = entry.find('=');
    Tool tool;
    if (equals != std::string_view::npos) {
      tool.fingerprint = entry;
      for (std::string_view words = entry.substr(equals + 1); !words.empty();) {
        const size_t space = std::min(words.find(' '), words.size());
        if (space) tool.command.emplace_back(words.substr(0, space));
        words.remove_prefix(std::min(space + 1, words.size()));
      }
    }
    if (!tool.command.empty() && tool.command[0][0] == '/') tools[std::string(entry.substr(0, equals))] = tool;
    else
      log(Log::loader, 1,
          "DOVETAIL_TOOLCHAINS: expected name=/path/of/command, got '" + cleaned(entry, 64) + "'; correct it");
  }
  return tools;
}

class Service {
 public:
  void set(const std::string& name, Tool tool) {
    const std::lock_guard guard(mutex_);
    if (!named_.contains(name)) tools_[name] = std::move(tool);
  }
  void build(Asked request, bool wait);
  void end() noexcept {
    const std::lock_guard none_is_running(answering_);
    ended_ = true;
  }
  std::vector<ToolReport> reports() {
    const std::lock_guard guard(mutex_);
    std::vector<ToolReport> all;
    for (const auto& [name, report] : reports_) all.push_back(report);
    return all;
  }
  std::string cache_problem() {
    const std::lock_guard guard(mutex_);
    return cache_ && !cache_->problem().empty() ? cache_->problem() : not_kept_;
  }
  void before_fork() { answering_.lock(), mutex_.lock(); }
  void after_fork(bool in_child);

 private:
  void start_thread();
  void serve();
  bool serve(Request&, bool fresh);
  void set_key(Request&);
  void open_cache();
  bool look_up(Request&);
  bool make(Request&);
  void ask(Request&);
  bool have_worker(const std::string& tool);
  void end_worker();
  std::shared_ptr<const Code> finished(const Request&, const ToolWorker::Answer&);
  void answer(Request&, std::shared_ptr<const Code> code, const std::string& reason);
  void fail(Request&, const std::string& reason);
  ToolReport& report(const std::string& tool) {
    ToolReport& found = reports_[tool];
    found.name = tool;
    return found;
  }

  std::mutex answering_;  // held while `ready` runs; taken before mutex_
  bool ended_ = false;
  // Guards the rest. Only the thread changes what comes after running_, so it reads that without the lock.
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::map<std::string, Tool> named_ = tools_of(platform::own_variable("DOVETAIL_TOOLCHAINS"));
  std::map<std::string, Tool> tools_ = named_;
  std::map<std::string, ToolReport> reports_;
  std::deque<Asked> fresh_, missing_;  // not looked up yet; to be made
  Asked current_;                      // what the thread works on
  bool running_ = false;               // the thread
  std::unique_ptr<ObjectCache> cache_;
  std::string not_kept_;  // why the last object is not on disk; empty: it is
  std::unique_ptr<ToolWorker> worker_;
  std::string worker_tool_;
  std::optional<platform::FileLock> wanted_;
  std::optional<platform::FileLock> key_lock_;
  std::map<std::string, std::weak_ptr<const Code>> shared_;
  std::map<std::string, std::string> failed_;  // reasons by key
};
std::atomic<Service*> the_service{nullptr};
Service& service() {
  static Service& it = *(the_service = new Service);  // its thread may live until the process ends
  return it;
}

// ---- the caller's side ------------------------------------------------------------------------------------------

void Service::build(Asked request, bool wait) {
  if (auto code = trusted_image(request->tool, request->text)) return answer(*request, std::move(code), "");
  std::string reason;
  std::unique_lock lock(mutex_);
  const auto tool = tools_.find(request->tool);
  if (tool == tools_.end())
    reason = "no toolchain '" + request->tool + "' is installed; pip install dovetail-" + request->tool;
  else reason = tool->second.problem;
  if (reason.empty()) {
    try {
      start_thread();
    } catch (const std::system_error& e) {
      reason = std::string("no thread can be started: ") + e.what();
    }
  }
  if (reason.empty()) {
    fresh_.push_back(request);
    changed_.notify_all();
    if (!wait) return;
    lock.unlock();
    const GilRelease others_run;
    lock.lock();
    changed_.wait(lock, [&] { return request->answered; });
    lock.unlock();  // before the interpreter's lock is taken
    return;
  }
  ToolReport& noted = report(request->tool);
  if (noted.failures.empty() || noted.failures.back() != reason) noted.failures.push_back(reason);
  lock.unlock();
  request->ready(request->ctx, nullptr, reason.c_str());
}

void Service::start_thread() {
  if (running_) return;
  std::thread([this] { serve(); }).detach();
  running_ = true;
}

// ---- the thread's side ------------------------------------------------------------------------------------------

void Service::serve() {
  std::unique_lock lock(mutex_);
  bool blocked = false;  // what is missing waits for other processes
  // What was asked for while an idle worker ended has started no thread: this one was running.
  for (Clock::time_point since = Clock::now();
       Clock::now() - since < kIdle || !fresh_.empty() || !missing_.empty();) {
    const auto work = [&] { return !fresh_.empty() || (!missing_.empty() && !blocked); };
    const Clock::duration pause = blocked ? kBetweenTries : worker_ ? kBetweenLooks : kIdle;
    // By the system's clock: C libraries before 2.30 wait by no other.
    if (!changed_.wait_until(lock, std::chrono::system_clock::now() + pause, work) && !blocked) {
      lock.unlock();
      if (worker_ && cache_->is_worker_wanted()) end_worker();
      lock.lock();
      continue;
    }
    const bool fresh = !fresh_.empty();
    std::deque<Asked>& queue = fresh ? fresh_ : missing_;
    current_ = queue.front();
    queue.pop_front();
    const Asked request = current_;
    lock.unlock();
    const bool done = serve(*request, fresh);
    lock.lock();
    since = Clock::now();
    if (!fresh) blocked = !done;
    if (done) continue;
    current_.reset();
    if (fresh) missing_.push_back(request);
    else missing_.push_front(request);
  }
  running_ = false;
  const std::unique_ptr<ToolWorker> ending = std::move(worker_);
  lock.unlock();
}

// Where DOVETAIL_COMPILE_DUMP names a folder, which was made for the program.
void dump(const Request& request) {
  const char* const folder = platform::own_variable("DOVETAIL_COMPILE_DUMP");
  if (!folder || !*folder) return;
  std::ofstream file(
      platform::to_path(std::string(folder) + "/" + request.tool + "-" + request.key.substr(0, 16) + ".request"));
  if (!(file << request.text).flush()) log(Log::loader, 2, std::string("no request can be written to ") + folder);
}

// Whether the request was answered. One that is fresh is only looked up.
bool Service::serve(Request& request, bool fresh) {
  try {
    open_cache();
    if (request.key.empty()) set_key(request), dump(request);
    return look_up(request) || (!fresh && make(request));
  } catch (const std::exception& e) {
    fail(request, e.what());
    return true;
  }
}

void Service::set_key(Request& request) {
  std::unique_lock lock(mutex_);
  const std::string fingerprint = tools_[request.tool].fingerprint;
  lock.unlock();
  Sha256 sum;
  for (const std::string_view part : {std::string_view("image 1"), std::string_view(request.tool),
                                      std::string_view(fingerprint), std::string_view(request.text)}) {
    const uint64_t size = part.size();
    sum.update(&size, sizeof size);
    sum.update(part.data(), part.size());
  }
  std::string key = to_hex(sum.finish());
  lock.lock();
  request.key = std::move(key);
}

void Service::open_cache() {
  if (cache_) return;
  const std::string folder = platform::cache_folder();
  auto cache = std::make_unique<ObjectCache>(folder.empty() ? folder : folder + "/objects");
  const std::lock_guard guard(mutex_);
  cache_ = std::move(cache);
}

// DOVETAIL_PERF_MAP=1: perf then names functions of code that has no file.
void name_for_perf(const Code& code, const Request& request) {
  if (environment_switch("DOVETAIL_PERF_MAP", false))
    platform::add_to_perf_map(code.perf_map("dovetail " + request.tool + " " + request.key.substr(0, 12)));
}

// A file of the cache ends with the key of its request, so that none is taken for another's. Throws Error(value).
std::string_view image_of(std::string_view file, const std::string& key) {
  if (!file.ends_with(key)) throw Error(ErrorKind::value, "it does not end with its key");
  return file.substr(0, file.size() - key.size());
}

// Whether it was answered from what there is.
bool Service::look_up(Request& request) {
  if (const auto failed = failed_.find(request.key); failed != failed_.end()) {
    answer(request, nullptr, failed->second);
    return true;
  }
  std::shared_ptr<const Code> code;
  if (const auto shared = shared_.find(request.key); shared != shared_.end()) code = shared->second.lock();
  const bool here = bool(code);
  if (!here) {
    const std::optional<std::string> file = cache_->read(request.key);
    if (!file) return false;
    try {
      code = std::make_shared<const Code>(image_of(*file, request.key));
      name_for_perf(*code, request);
    } catch (const Error& e) {
      if (e.kind != ErrorKind::value) throw;
      log(Log::loader, 2, "the object " + request.key + " of the cache is damaged: " + e.what());
      cache_->remove(request.key);
      return false;
    }
  }
  {
    const std::lock_guard guard(mutex_);
    ++(here ? report(request.tool).shared : report(request.tool).kept);
    shared_[request.key] = code;
  }
  answer(request, std::move(code), "");
  return true;
}

// Whether the request was answered; if not, another process has what it needs, so try again later.
bool Service::make(Request& request) {
  if (!have_worker(request.tool)) return false;
  std::optional<platform::FileLock> lock = cache_->lock_key(request.key);
  if (!lock && Clock::now() - request.begin < kPatience) return false;
  {
    const std::lock_guard guard(mutex_);
    key_lock_ = std::move(lock);
  }
  // Another process may have made it while the worker started.
  if (!look_up(request)) ask(request);
  const std::lock_guard guard(mutex_);
  key_lock_.reset();
  return true;
}

void Service::ask(Request& request) {
  std::shared_ptr<const Code> code;
  std::string reason;
  std::optional<ToolWorker::Answer> given;
  try {
    given = worker_->ask(request.text);
    code = finished(request, *given);
  } catch (const Error& e) {
    reason = e.what();
  }
  if (!given) end_worker();
  if (code) answer(request, std::move(code), "");
  else fail(request, reason);
}

std::shared_ptr<const Code> Service::finished(const Request& request, const ToolWorker::Answer& answer) {
  if (!answer.made) throw Error(ErrorKind::value, cleaned(answer.bytes));
  auto code = std::make_shared<const Code>(answer.bytes);
  name_for_perf(*code, request);
  std::string not_kept = cache_->write(request.key, answer.bytes + request.key);
  const std::lock_guard guard(mutex_);
  not_kept_ = std::move(not_kept);
  shared_[request.key] = code;
  report(request.tool).made.push_back({request.key, answer.bytes.size(), answer.microseconds / 1e3});
  return code;
}

bool Service::have_worker(const std::string& name) {
  if (worker_ && worker_tool_ == name && worker_->running()) return true;
  end_worker();
  std::optional<platform::FileLock> place = cache_->lock_worker();
  if (!place) {
    if (!wanted_) wanted_ = cache_->want_worker();
    return false;
  }
  wanted_.reset();
  Tool tool;
  {
    const std::lock_guard guard(mutex_);
    tool = tools_[name];
  }
  if (!tool.problem.empty()) throw Error(ErrorKind::runtime, tool.problem);
  std::unique_ptr<ToolWorker> started;
  try {
    started = std::make_unique<ToolWorker>(tool, *place);
  } catch (const Error& e) {
    const std::lock_guard guard(mutex_);
    tools_[name].problem = e.what();
    throw;
  }
  const std::lock_guard guard(mutex_);
  worker_ = std::move(started);
  worker_tool_ = name;
  return true;
}

void Service::end_worker() {
  std::unique_ptr<ToolWorker> ending;
  const std::lock_guard guard(mutex_);
  ending = std::move(worker_);
}

void Service::fail(Request& request, const std::string& reason) {
  {
    const std::lock_guard guard(mutex_);
    failed_[request.key] = reason;
    report(request.tool).failures.push_back(reason);
  }
  log(Log::loader, 2, "toolchain " + request.tool + ": " + reason);
  answer(request, nullptr, reason);
}

void Service::answer(Request& request, std::shared_ptr<const Code> code, const std::string& reason) {
  if (code) note_image(request.tool, request.text, code);
  dvt_code* const given = code ? new dvt_code{std::move(code)} : nullptr;
  const std::lock_guard no_fork(answering_);
  {
    const std::lock_guard guard(mutex_);
    if (current_.get() == &request) current_.reset();
  }
  if (ended_) delete given;
  else request.ready(request.ctx, given, given ? nullptr : reason.c_str());
  const std::lock_guard guard(mutex_);
  request.answered = true;
  changed_.notify_all();
}

// ---- fork -------------------------------------------------------------------------------------------------------

// The child has neither the thread nor a worker. What was asked for waits there for the next request.
void Service::after_fork(bool in_child) {
  if (in_child) {
    if (worker_) worker_.release()->leave_to_parent();
    for (std::optional<platform::FileLock>* lock : {&key_lock_, &wanted_})
      if (*lock) (*lock)->close_file();
    if (current_) missing_.push_front(std::move(current_));
    running_ = false;
    new (&changed_) std::condition_variable;
  }
  mutex_.unlock();
  answering_.unlock();
}

// ---- the C functions --------------------------------------------------------------------------------------------

dvt_status build(const dvt_host* host, const char* tool, const void* request, size_t size, Ready ready, void* ctx) {
  if (!tool || !ready || (!request && size))
    return host->fail(host, DVT_INVALID, 0, __FILE__, __LINE__, "[build] there is no tool, request or function");
  static const bool wait = environment_switch("DOVETAIL_COMPILE_WAIT", false);
  try {
    const std::string text(static_cast<const char*>(request), size);
    service().build(std::make_shared<Request>(Request{tool, text, ready, ctx}), wait);
    return DVT_OK;
  } catch (const std::bad_alloc&) {
    return DVT_OOM;
  }
}

const void* entry(const dvt_code* code, uint32_t index) { return code->code->entry(index); }
void release(dvt_code* code) { delete code; }
}  // namespace

const dvt_toolchain& toolchain_service() {
  static constexpr dvt_toolchain table{sizeof(dvt_toolchain), 0, build, entry, release};
  return table;
}
void set_toolchain(const std::string& name, Tool tool) { service().set(name, std::move(tool)); }
std::vector<ToolReport> toolchain_reports() { return service().reports(); }
std::string toolchain_cache_problem() { return service().cache_problem(); }
void end_toolchains() noexcept {
  if (Service* s = the_service) s->end();
}

namespace {
Service* frozen;  // while the process forks
}
void toolchains_before_fork() {
  if ((frozen = the_service)) frozen->before_fork();
}
void toolchains_after_fork(bool in_child) {
  if (frozen) frozen->after_fork(in_child);
}
}  // namespace dovetail
