// Feeds changed programs to the reader, the binder and a device, and expects nothing worse than an Error.
//
//   fuzz_program DECOMPOSITIONS [--programs FOLDER] [--device LIBRARY] [--seed N] [--minutes M] [--cases N]
//   fuzz_program --replay FILE [--inputs f32.2,i64.1] [--device LIBRARY] [--seed N]
//
// Cases run in a child process. One that crashes, computes for 20 s, hangs for 300 or throws something else is made
// smaller, written to a file and reported with the command that repeats it. Build it with the sanitizers: they find
// more.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "device/backend.hpp"
#include "target.hpp"

// An allocation of more than this is a finding: the texts are small.
extern "C" __attribute__((used)) const char* __asan_default_options() {
  return "allocator_may_return_null=0:max_allocation_size_mb=512:hard_rss_limit_mb=3000:detect_leaks=0";
}

namespace {
using namespace fuzz;
constexpr size_t kMostText = 1 << 20;
constexpr unsigned kMostSeconds = 20, kMostWaiting = 300;  // of the processor, of a clock on the wall
constexpr int kThrew = 3;
constexpr size_t kCasesOfOneChild = 3000;

struct Options {
  std::string decompositions, folder, library, replay;
  uint64_t seed = 1;
  double minutes = 1;
  uint64_t cases = UINT64_MAX;  // it ends after so many
};

// The case that a child works on: its parent reads it where the child has died.
struct Shared {
  uint64_t seed;
  size_t length;
  Counts counts;
  uint64_t cases;
  char text[kMostText];
};

struct Case {
  std::string text;
  std::vector<Seed::Input> inputs;
};

// The folder of the loader's cache and of files, which ends with this process.
class Cache {
 public:
  Cache() {
    if (!mkdtemp(name_.data())) throw std::runtime_error("cannot make " + name_);
    setenv("XDG_CACHE_HOME", name_.c_str(), 1);
    setenv("DOVETAIL_LOGS", "-loader", 0);
  }
  Cache(const Cache&) = delete;
  ~Cache() { std::filesystem::remove_all(name_); }  // children leave by _exit

 private:
  std::string name_ = (std::filesystem::temp_directory_path() / "dovetail-fuzz-XXXXXX").string();
};

dovetail::Device* device_of(const std::string& library) {
  if (library.empty()) return nullptr;
  return dovetail::load_backend("", library, {}).devices.at(0);
}

// Dies or exits with kThrew where the case finds something.
void run_case(Shared& shared, const Case& c, uint64_t seed, dovetail::Device* device) {
  shared.seed = seed, shared.length = std::min(c.text.size(), kMostText);
  std::memcpy(shared.text, c.text.data(), shared.length);
  const itimerval computing{{}, {kMostSeconds, 0}};
  setitimer(ITIMER_PROF, &computing, nullptr);  // a loaded machine gives a case few of its seconds
  alarm(kMostWaiting);
  Rng rng(seed);
  try {
    run_program(c.text, c.inputs, device, std::getenv("XDG_CACHE_HOME"), rng, shared.counts);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "threw %s\n", e.what());
    _exit(kThrew);
  }
  ++shared.cases;
}

// The wait status of a child that runs `body` and then exits with 0.
template <class Body>
int in_child(const Body& body, bool quiet) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (quiet && !std::freopen("/dev/null", "w", stderr)) _exit(1);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

Case made_case(const std::vector<Seed>& seeds, Rng& rng) {
  const Seed& seed = seeds[below(rng, seeds.size())];
  dovetail::Json document = seed.document;
  if (below(rng, 20)) mutate(document, seeds[below(rng, seeds.size())].document, rng);
  Case c{document.dump(), seed.inputs};
  if (below(rng, 8) == 0) mutate_text(c.text, rng);
  return c;
}

std::string smaller(const Shared& shared, Shared& scratch, const Case& found, int status, const Options& options) {
  const auto fails_alike = [&](const std::string& text) {
    return in_child([&] { run_case(scratch, {text, found.inputs}, shared.seed, device_of(options.library)); },
                    true) == status;
  };
  try {
    dovetail::Json document = dovetail::parse_json(found.text);
    shrink(document, 300, [&](const dovetail::Json& j) { return fails_alike(j.dump()); });
    return document.dump();
  } catch (const dovetail::Error&) {
    return found.text;  // no JSON: as it is
  }
}

int report(const Shared& shared, Shared& scratch, const Case& found, int status, const Options& options,
           const char* program) {
  const std::string text = smaller(shared, scratch, found, status, options);
  const std::string file = "fuzz_program_" + std::to_string(shared.seed) + ".json";
  std::ofstream(file, std::ios::binary) << text;
  std::string inputs;
  for (const Seed::Input& i : found.inputs)
    inputs += std::string(inputs.empty() ? "" : ",") + dovetail::info(i.dtype).brief + "." + std::to_string(i.rank);
  std::fprintf(stderr, "%s; repeat it with\n  %s --replay %s --seed %llu%s%s%s%s\n%.2000s\n",
               WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "failed", program, file.c_str(),
               static_cast<unsigned long long>(shared.seed), inputs.empty() ? "" : " --inputs ", inputs.c_str(),
               options.library.empty() ? "" : " --device ", options.library.c_str(), text.c_str());
  return 1;
}
}  // namespace

// dtypes and ranks as report() writes them.
static std::vector<Seed::Input> inputs_named(const std::string& text) {
  std::vector<Seed::Input> made;
  std::stringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    const size_t dot = one.find('.');
    for (int t = 0; t < dovetail::kDTypes; ++t)
      if (one.substr(0, dot) == dovetail::dtype_table[t].brief)
        made.push_back({dovetail::DType(t), std::atoi(one.c_str() + dot + 1)});
  }
  return made;
}

static int fuzz_for(const Options& options, const char* program) {
  const std::vector<Seed> seeds = read_seeds(options.decompositions, options.folder);
  void* memory = mmap(nullptr, 2 * sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  Shared *shared = static_cast<Shared*>(memory), *scratch = shared + 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.minutes * 60);
  const auto made = [&](uint64_t seed) {
    Rng rng(seed);
    return made_case(seeds, rng);
  };
  std::printf("seed %llu, %zu programs\n", static_cast<unsigned long long>(options.seed), seeds.size());
  const auto ended = [&] { return std::chrono::steady_clock::now() >= end || shared->cases >= options.cases; };
  for (uint64_t next = options.seed << 32; !ended(); next += kCasesOfOneChild) {
    const int status = in_child(
        [&] {
          dovetail::Device* device = device_of(options.library);
          for (uint64_t seed = next; seed < next + kCasesOfOneChild && !ended(); ++seed)
            run_case(*shared, made(seed), seed, device);
        },
        false);
    if (status == 0) continue;
    const Case found{std::string(shared->text, shared->length), made(shared->seed).inputs};
    return report(*shared, *scratch, found, status, options, program);
  }
  const auto n = [](uint64_t i) { return static_cast<unsigned long long>(i); };
  std::printf("%llu cases: %llu programs read, %llu bound, %llu run\n", n(shared->cases), n(shared->counts.read),
              n(shared->counts.bound), n(shared->counts.run));
  return 0;
}

static int replay_file(const Options& options, const std::string& inputs) {
  std::ifstream file(options.replay, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  static Shared shared;
  run_case(shared, {text.str(), inputs_named(inputs)}, options.seed, device_of(options.library));
  std::puts("nothing found");
  return 0;
}

int main(int n, char** args) {
  Options options;
  std::string inputs;
  for (int i = 1; i < n; ++i) {
    const std::string name = args[i];
    if (name[0] != '-') {
      options.decompositions = name;
      continue;
    }
    const std::string value = i + 1 < n ? args[++i] : "";
    if (name == "--programs") options.folder = value;
    else if (name == "--device") options.library = value;
    else if (name == "--replay") options.replay = value;
    else if (name == "--inputs") inputs = value;
    else if (name == "--seed") options.seed = std::stoull(value);
    else if (name == "--minutes") options.minutes = std::stod(value);
    else if (name == "--cases") options.cases = std::stoull(value);
    else return std::fprintf(stderr, "%s: unknown option\n", name.c_str()), 2;
  }
  const Cache cache;
  return options.replay.empty() ? fuzz_for(options, args[0]) : replay_file(options, inputs);
}
