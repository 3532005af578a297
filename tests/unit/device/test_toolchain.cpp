#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "check.hpp"
#include "device/backend.hpp"
#include "device/fake_tool.hpp"
#include "device/toolchain.hpp"
#include "platform/private_folder.hpp"

using namespace dovetail;
using namespace std::chrono_literals;

namespace {
const dvt_toolchain& service() {
  static const dvt_host* const host = new_host("test", "/test");
  return *static_cast<const dvt_toolchain*>(host->extension(host, "dovetail.toolchain", DVT_X_TOOLCHAIN));
}
const dvt_host* host() {
  static const dvt_host* const it = new_host("test", "/test");
  return it;
}

struct Answer {  // released at its end
  std::mutex mutex;
  std::condition_variable came;
  int times = 0;
  dvt_code* code = nullptr;
  std::string reason;
  static void ready(void* ctx, dvt_code* code, const char* reason) {
    auto& a = *static_cast<Answer*>(ctx);
    const std::lock_guard guard(a.mutex);
    ++a.times, a.code = code, a.reason = reason ? reason : "";
    a.came.notify_all();
  }
  ~Answer() { service().release(code); }
  Answer& ask(const std::string& tool, const std::string& request) {
    CHECK_EQ(service().build(host(), tool.c_str(), request.data(), request.size(), ready, this), DVT_OK);
    return *this;
  }
  bool wait(std::chrono::milliseconds most = 20s) {
    std::unique_lock lock(mutex);
    return came.wait_for(lock, most, [&] { return times > 0; });
  }
  int value() {  // of the function; -1: none
    if (!wait() || !code) return -1;
    const auto f = reinterpret_cast<int (*)()>(const_cast<void*>(service().entry(code, 0)));
    return f ? f() : -2;
  }
};
std::string reason_for(const std::string& tool, const std::string& request) {
  Answer a;
  return a.ask(tool, request).wait() ? a.reason : "no answer";
}

const bool emulated = std::getenv("QEMU_CPU");  // which says more than the program when that dies
std::string scratch;                            // a folder of this run

// The workers that noted `what`: "start", or a request.
std::vector<int> who(const std::string& what) {
  std::ifstream file(scratch + "/log");
  std::vector<int> all;
  for (std::string line; std::getline(file, line);)
    if (line.substr(line.find(' ') + 1) == what) all.push_back(std::stoi(line));
  return all;
}
int asked(const std::string& request) { return int(who(request).size()); }
std::vector<int> workers() { return who("start"); }
// Whether its parent does not see its end yet. The first thread is a zombie from its own end on, with others beside
// it or none.
bool alive(int pid) {
  const std::string status = platform::read_file("/proc/" + std::to_string(pid) + "/stat");
  if (status.empty()) return false;
  std::istringstream fields(status.substr(status.rfind(')') + 2));
  std::string field;
  fields >> field;
  const bool zombie = field == "Z";
  for (int i = 4; i <= 20; ++i) fields >> field;  // see proc(5)
  return !zombie || std::stoi(field) > 1;
}
void wait_for_end(int pid) {
  for (int i = 0; i < 100 && alive(pid); ++i) std::this_thread::sleep_for(50ms);
  CHECK(!alive(pid));
}
std::string key_of_last() {
  for (const ToolReport& r : toolchain_reports())
    if (r.name == "fake") return r.made.back().key;
  return {};
}
int count_failures(const std::function<void()>& body) {  // in a child process
  std::fflush(nullptr);
  const pid_t child = fork();
  if (!child) {
    alarm(40);
    check::failures = 0;
    body();
    _exit(check::failures);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}
}  // namespace

TEST(nothing_runs_before_the_first_request) {
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto before = threads();
  service();
  CHECK_EQ(threads(), before);
  CHECK(workers().empty());
}

TEST(a_tool_that_is_not_there) {
  Answer a;
  a.ask("nowhere", "x");
  CHECK_EQ(a.times, 1);  // at once
  CHECK_EQ(a.reason, "no toolchain 'nowhere' is installed; pip install dovetail-nowhere");
  const std::string absent = reason_for("absent", "x");  // an emulator starts programs in another process
  CHECK(emulated ? !absent.empty() : absent.find("/nonexistent cannot be run: No such file") != std::string::npos);
  CHECK_EQ(reason_for("unusable", "x"), "sys.executable is no Python");
  CHECK(reason_for("rude", "x").find("greets with 'HTTP/1.1 400 Bad'") != std::string::npos);
  CHECK_EQ(reason_for("broken", "x"),
           "the worker left with exit code 1, saying: ModuleNotFoundError: No module named 'llvmlite'");
  CHECK_EQ(reason_for("mute", "x"), "the worker did not answer in time");
  CHECK_EQ(reason_for("mute", "y"), "the worker did not answer in time");  // at once
}

TEST(code_is_made_and_runs) {
  Answer a;
  CHECK_EQ(a.ask("fake", "first").value(), fake_tool::value_of("first"));
  CHECK_EQ(a.times, 1);
  CHECK(!service().entry(a.code, 1));
  CHECK(!service().entry(a.code, 2));
  Answer again;  // the same code, from this process
  CHECK_EQ(again.ask("fake", "first").value(), fake_tool::value_of("first"));
  CHECK_EQ(service().entry(again.code, 0), service().entry(a.code, 0));
  CHECK_EQ(asked("first"), 1);
}

TEST(perf_learns_where_functions_are) {
  if (!check::forks_beside_threads) return;
  const auto body = [] {
    setenv("DOVETAIL_PERF_MAP", "1", 1);
    Answer a;
    CHECK_EQ(a.ask("fake", "named").value(), fake_tool::value_of("named"));
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    std::istringstream line(platform::read_file(path));
    std::filesystem::remove(path);
    uintptr_t at = 0, size = 0;
    std::string name, tool;
    CHECK(line >> std::hex >> at >> size >> name >> tool);
    CHECK_EQ(at, reinterpret_cast<uintptr_t>(service().entry(a.code, 0)));
    CHECK(size > 0 && name == "dovetail" && tool == "fake");
  };
  CHECK_EQ(count_failures(body), 0);
}

TEST(code_outlives_other_users_of_it) {
  Answer a;
  {
    Answer b;
    CHECK_EQ(b.ask("fake", "shared").value(), fake_tool::value_of("shared"));
    CHECK(a.ask("fake", "shared").wait());
  }
  CHECK_EQ(a.value(), fake_tool::value_of("shared"));
}

TEST(code_is_kept_on_disk) {
  {
    CHECK(Answer().ask("fake", "kept").value() > 0);
  }
  const std::string key = key_of_last(), file = scratch + "/dovetail/objects/" + key + ".code";
  CHECK(std::filesystem::exists(file));
  CHECK_EQ(Answer().ask("fake", "kept").value(), fake_tool::value_of("kept"));
  CHECK_EQ(asked("kept"), 1);
  // Damaged files are made again.
  const std::string others =
      fake_tool::sealed(fake_tool::image(1)) + std::string(key.size(), 'a');  // sound, of another key
  for (const std::string& bad :
       {std::string("x"), std::string(300, 'x') + key, fake_tool::image(1) + key, std::string(), others}) {
    std::ofstream(file, std::ios::trunc) << bad;
    const int before = asked("kept");
    CHECK_EQ(Answer().ask("fake", "kept").value(), fake_tool::value_of("kept"));
    CHECK_EQ(asked("kept"), before + 1);
    CHECK_EQ(platform::read_file(file), fake_tool::sealed(fake_tool::image(fake_tool::value_of("kept"))) + key);
  }
  // A link to another file is no object.
  std::filesystem::rename(file, file + ".elsewhere");
  std::filesystem::create_symlink(file + ".elsewhere", file);
  CHECK_EQ(Answer().ask("fake", "kept").value(), fake_tool::value_of("kept"));
  CHECK(!std::filesystem::is_symlink(file));
}

TEST(a_worker_that_dies) {
  const size_t before = workers().size();
  const std::string reason = reason_for("fake", "crash");
  if (!emulated) CHECK_EQ(reason, "the worker died with SIGABRT, saying: LLVM ERROR: Cannot select");
  CHECK_EQ(reason.substr(0, 28), "the worker died with SIGABRT");
  CHECK_EQ(reason_for("fake", "crash"), reason);
  CHECK_EQ(asked("crash"), 1);  // a request that killed a worker is not asked again
  CHECK_EQ(Answer().ask("fake", "after a crash").value(), fake_tool::value_of("after a crash"));
  CHECK_EQ(reason_for("fake", "leave"), "the worker left with exit code 5");
  Answer killed;
  killed.ask("fake", "hang 1");
  while (!asked("hang 1")) std::this_thread::sleep_for(1ms);
  kill(who("hang 1").back(), SIGKILL);
  CHECK(killed.wait());
  CHECK_EQ(killed.reason, "the worker died with SIGKILL");
  CHECK_EQ(Answer().ask("fake", "after kill").value(), fake_tool::value_of("after kill"));
  kill(who("after kill").back(), SIGKILL);  // between requests
  wait_for_end(who("after kill").back());
  CHECK_EQ(Answer().ask("fake", "after another").value(), fake_tool::value_of("after another"));
  CHECK(workers().size() > before + 3);
}

TEST(a_worker_that_never_answers) {
  CHECK_EQ(reason_for("fake", "hang 2"), "the worker did not answer in time");
  CHECK(!alive(who("hang 2").back()));
  CHECK_EQ(Answer().ask("fake", "after a hang").value(), fake_tool::value_of("after a hang"));
}

TEST(hostile_answers) {
  CHECK_EQ(reason_for("fake", "garbage"), "the worker's answer is of no kind that is known");
  CHECK(reason_for("fake", "short").starts_with("the worker left with exit code 0"));
  CHECK_EQ(reason_for("fake", "damaged"), "an image of machine code does not have its checksum");
  CHECK_EQ(reason_for("fake", "refuse"), "undefined symbol 'expf8'");
  const size_t before = workers().size();
  CHECK_EQ(Answer().ask("fake", "after lies").value(), fake_tool::value_of("after lies"));
  CHECK_EQ(workers().size(), before);  // a refusal is no reason to start another
  CHECK_EQ(Answer().ask("fake", "loud").value(), fake_tool::value_of("loud"));
}

TEST(interrupts_do_not_reach_it) {
  CHECK(Answer().ask("fake", "a session").value() > 0);
  const int worker = who("a session").back();
  CHECK(worker != getsid(0));
  CHECK_EQ(getsid(worker), worker);
}

TEST(requests_from_many_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 20; ++i) {
        const std::string request(size_t(100 + (t + i) % 10), 'm');
        CHECK_EQ(Answer().ask("fake", request).value(), fake_tool::value_of(request));
      }
    });
  for (auto& t : threads) t.join();
  for (int n = 100; n < 110; ++n) CHECK_EQ(asked(std::string(size_t(n), 'm')), 1);
}

TEST(a_fork_while_a_worker_works) {
  if (!check::forks_beside_threads) return;
  Answer mine;
  mine.ask("fake", "slow fork");
  while (!asked("slow fork")) std::this_thread::sleep_for(1ms);
  const int worker = who("slow fork").back();
  CHECK_EQ(count_failures([&] {
             CHECK_EQ(mine.times, 0);  // the child asks again, with its next request
             CHECK_EQ(Answer().ask("fake", "of the child").value(), fake_tool::value_of("of the child"));
             CHECK_EQ(mine.value(), fake_tool::value_of("slow fork"));
           }),
           0);
  CHECK_EQ(mine.value(), fake_tool::value_of("slow fork"));
  CHECK_EQ(count_failures([&] { CHECK_EQ(mine.value(), fake_tool::value_of("slow fork")); }), 0);
  CHECK(alive(worker));
}

TEST(processes_share_workers_and_objects) {
  if (!check::forks_beside_threads) return;
  const size_t before = workers().size();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    if (!children.emplace_back(fork())) {
      alarm(60);
      const bool right = Answer().ask("fake", "slow of several").value() == fake_tool::value_of("slow of several");
      _exit(right ? 0 : 1);
    }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  CHECK_EQ(asked("slow of several"), 1);
  CHECK(workers().size() <= before + 4);
}

TEST(processes_whose_workers_start_slowly_make_one_object) {
  if (!check::forks_beside_threads) return;
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i)
    if (!children.emplace_back(fork())) {
      std::this_thread::sleep_for(i * 100ms);
      alarm(60);
      _exit(Answer().ask("late", "once").value() == fake_tool::value_of("once") ? 0 : 1);
    }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  CHECK_EQ(asked("once"), 1);
}

TEST(an_idle_worker_makes_room_for_another_process) {
  if (!check::forks_beside_threads) return;
  std::vector<pid_t> children;
  for (const char* request : {"idle 1", "idle 2"})
    if (!children.emplace_back(fork())) {
      alarm(60);
      if (Answer().ask("fake", request).value() < 0) _exit(1);
      for (;;) pause();
    }
  while (!asked("idle 1") || !asked("idle 2")) std::this_thread::sleep_for(5ms);
  Answer a;
  CHECK(a.ask("late", "in between").wait(3s));
  CHECK_EQ(a.value(), fake_tool::value_of("in between"));
  for (const pid_t child : children) kill(child, SIGKILL), waitpid(child, nullptr, 0);
  wait_for_end(who("idle 1").back()), wait_for_end(who("idle 2").back());
}

TEST(the_worker_goes_when_it_is_idle) {
  CHECK(Answer().ask("fake", "last").value() > 0);
  const int worker = who("last").back();
  std::this_thread::sleep_for(8s);
  CHECK(alive(worker));
  wait_for_end(worker);
  CHECK_EQ(Answer().ask("fake", "after the last").value(), fake_tool::value_of("after the last"));
}

TEST(the_worker_goes_with_the_process) {
  if (!check::forks_beside_threads) return;
  const auto body = [] {
    CHECK(Answer().ask("fake", "of a child that ends").value() > 0);
    const pid_t grandchild = fork();  // it outlives the child, and has a copy of its files
    if (!grandchild)
      for (;;) pause();
    std::ofstream(scratch + "/grandchild") << grandchild;
  };
  CHECK_EQ(count_failures(body), 0);
  wait_for_end(who("of a child that ends").back());
  CHECK(!kill(std::stoi(platform::read_file(scratch + "/grandchild")), SIGKILL));
}

int main(int n, char** args) {
  if (n > 2 && std::string_view(args[1]) == "--worker") return fake_tool::worker(args[2]);
  scratch = (std::filesystem::temp_directory_path() / "dovetail-toolchain-XXXXXX").string();
  if (!mkdtemp(scratch.data())) return 1;
  setenv("XDG_CACHE_HOME", scratch.c_str(), 1);
  setenv("FAKE_TOOL_LOG", (scratch + "/log").c_str(), 1);
  setenv("DOVETAIL_TOOLCHAIN_TIMEOUT", "2", 1);
  const std::string self = std::filesystem::canonical("/proc/self/exe");
  for (const char* mode : {"fake", "mute", "rude", "broken", "late"})
    set_toolchain(mode, {{self, "--worker", mode}, std::string("version 1 of ") + mode, ""});
  set_toolchain("absent", {{"/nonexistent"}, "", ""});
  set_toolchain("unusable", {{}, "", "sys.executable is no Python"});
  const pid_t owner = getpid();
  const int failed = check::run(n, args);
  if (getpid() == owner) std::filesystem::remove_all(scratch);
  return failed;
}
