#include "autotune.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "dovetail/backend.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace dovetail::cpu {
namespace {
namespace fs = std::filesystem;
constexpr std::array<std::string_view, 4> names{"usual", "own", "openblas", "onednn"};
constexpr int repetitions = 3;
constexpr double long_run = 0.1;  // seconds of a product that is not repeated

double seconds(const std::function<bool(Engine)>& run, Engine engine) {
  const auto begin = std::chrono::steady_clock::now();
  if (!run(engine)) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
// The first run makes what the engine keeps, as code for the shape.
double shortest(const std::function<bool(Engine)>& run, Engine engine) {
  double best = seconds(run, engine);
  if (best > long_run) return best;
  for (int i = 0; i < repetitions; ++i) best = std::min(best, seconds(run, engine));
  return best;
}

fs::path cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return fs::path(cache) / "dovetail";
  return home && *home == '/' ? fs::path(home) / ".cache" / "dovetail" : fs::path();
}

// Winners by kind. Lines of the file: kind, engine, microseconds; its first line is the identity.
class Winners {
 public:
  explicit Winners(const std::string& identity) : identity_(identity) {
    const fs::path folder = cache_folder();
    if (folder.empty()) {
      warn("neither XDG_CACHE_HOME nor HOME is set");
      return;
    }
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : identity) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
    char name[48];
    std::snprintf(name, sizeof name, "cpu-products-%016llx.txt", static_cast<unsigned long long>(hash));
    path_ = folder / name;
    read();
  }

  bool run(const std::string& kind, std::span<const Engine> engines, const std::function<bool(Engine)>& run) {
    Engine winner = Engine::usual;
    {
      const std::lock_guard guard(mutex_);
      if (const auto found = engines_.find(kind); found != engines_.end()) winner = found->second;
      else engines_[kind] = winner = measure(kind, engines, run);
    }
    return run(winner) || (winner != Engine::usual && run(Engine::usual));
  }

 private:
  Engine measure(const std::string& kind, std::span<const Engine> engines, const std::function<bool(Engine)>& run) {
    Engine winner = Engine::usual;
    double best = shortest(run, winner);
    for (const Engine engine : engines)
      if (const double time = shortest(run, engine); time < best) best = time, winner = engine;
    write(kind, winner, best);
    return winner;
  }

  void read() {
    std::ifstream file(path_);
    std::string line, kind, engine, time;
    if (!std::getline(file, line) || line != identity_) {  // cut off, or of another identity with that hash
      std::error_code error;
      fs::remove(path_, error);
      return;
    }
    while (std::getline(file, line)) {  // one may be cut off, or the identity of another process
      std::istringstream fields(line);
      if (!(fields >> kind >> engine >> time)) continue;
      if (const auto at = std::ranges::find(names, engine); at != names.end())
        engines_[kind] = Engine(at - names.begin());
    }
  }

  // One line at the end, in one write: other processes may do the same.
  void write(const std::string& kind, Engine engine, double time) {
    if (path_.empty()) return;
    std::error_code error;
    fs::create_directories(path_.parent_path(), error);
    char rest[64];
    std::snprintf(rest, sizeof rest, " %s %.1f\n", names[size_t(engine)].data(), time * 1e6);
    const bool begins = !fs::exists(path_, error);
    std::ofstream file(path_, std::ios::app);
    file << (begins ? identity_ + "\n" : "") + kind + rest << std::flush;
    if (!file) warn("cannot write " + path_.string()), path_.clear();
  }

  static void warn(const std::string& cause) {
    const std::string text = "[cpu] DOVETAIL_CPU_AUTOTUNE: " + cause + "; each process will measure anew";
    dvt::host->log(dvt::host, 2, text.c_str());
  }

  const std::string identity_;
  fs::path path_;
  std::mutex mutex_;
  std::unordered_map<std::string, Engine> engines_;
};

std::string identity_of_winners;
std::atomic<Winners*> known{nullptr};  // never destroyed: products may outlive static objects
Winners& winners() {
  if (Winners* const found = known.load()) return *found;
  auto* const made = new Winners(identity_of_winners);
  Winners* other = nullptr;
  if (known.compare_exchange_strong(other, made)) return *made;
  delete made;
  return *other;
}

// A forked child reads the file anew: another thread may have been measuring, under a lock that stays locked there.
void start_anew_after_fork() {
#ifndef _WIN32
  static const int registered = pthread_atfork(nullptr, nullptr, [] { known.store(nullptr); });
  (void)registered;
#endif
}
}  // namespace

bool start_autotune(const char* wish, const std::string& identity) {
  const std::string_view value = wish ? wish : "";
  if (value == "1") identity_of_winners = identity, start_anew_after_fork();
  return value.empty() || value == "0" || value == "1";
}

bool autotunes() { return !identity_of_winners.empty(); }

bool run_fastest(const std::string& kind, std::span<const Engine> engines, const std::function<bool(Engine)>& run) {
  return winners().run(kind, engines, run);
}
}  // namespace dovetail::cpu
