#include "device/probe_child.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <sstream>

#include "device/backend.hpp"
#include "device/environment.hpp"
#include "device/log.hpp"
#include "device/probe_stages.hpp"
#include "error.hpp"
#include "platform/platform.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
// The first start of a driver takes seconds; the user can allow it more.
std::chrono::seconds timeout() {
  return std::chrono::seconds(environment_number("DOVETAIL_PROBE_TIMEOUT", 1, 24 * 3600, 20));
}
constexpr size_t kRemembered = 256;

// Fast; different files rarely collide. It is no defence against a file that was made to collide.
uint64_t hash_of(std::span<const std::byte> bytes) {
  uint64_t lanes[4] = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93};
  const auto mix = [&](int lane, uint64_t word) {
    lanes[lane] = (lanes[lane] ^ word) * 0xFF51AFD7ED558CCD;
    lanes[lane] ^= lanes[lane] >> 29;
  };
  size_t at = 0;
  for (uint64_t next[4]; at + sizeof next <= bytes.size(); at += sizeof next) {
    std::memcpy(next, bytes.data() + at, sizeof next);
    for (int lane = 0; lane < 4; ++lane) mix(lane, next[lane]);
  }
  for (; at < bytes.size(); ++at) mix(0, uint64_t(bytes[at]));
  mix(1, bytes.size());
  for (int lane = 1; lane < 4; ++lane) mix(0, lanes[lane]);
  return lanes[0];
}

// The libraries that did not crash since the machine started: a line with the boot id, then one hash per line.
class Memory {
 public:
  Memory() : folder_(platform::cache_folder()), boot_(platform::boot_id()) {
    if (folder_.empty() || boot_.empty()) return;
    std::istringstream lines(platform::read_own_file(path()));
    std::string line;
    if (std::getline(lines, line) && line == boot_)
      while (std::getline(lines, line)) known_.push_back(line);
  }
  bool knows(const std::string& key) const { return std::find(known_.begin(), known_.end(), key) != known_.end(); }
  void add(const std::string& key) {
    if (folder_.empty() || boot_.empty()) return;
    known_.push_back(key);
    std::string content = boot_ + "\n";
    for (size_t i = known_.size() > kRemembered ? known_.size() - kRemembered : 0; i < known_.size(); ++i)
      content += known_[i] + "\n";
    if (!platform::replace_file(path(), content))
      log(Log::loader, 2, "cannot write " + path() + ": libraries are probed again next time");
  }

 private:
  std::string path() const { return folder_ + "/probed"; }
  std::string folder_, boot_;
  std::vector<std::string> known_;
};

std::string key_of(const std::string& library) {
  const platform::MappedFile file(library);
  char text[17] = {};
  std::to_chars(text, text + 16, hash_of(file.bytes()), 16);
  return text;
}

// The end of what the child wrote to stderr, on one line.
std::string last_lines(const std::string& errors) {
  constexpr size_t most = 400;
  std::string text = errors.size() > most ? "..." + errors.substr(errors.size() - most) : errors;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  text = cleaned(text);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "" : ", saying: " + text;
}

// "crashed with SIGSEGV in device_count"; empty where all went well.
std::string what_went_wrong(const platform::Ended& child) {
  const size_t last = child.output.rfind(probe::kStage);
  const size_t begin = last == std::string::npos ? last : last + std::strlen(probe::kStage);
  std::string stage =
      last == std::string::npos ? "" : child.output.substr(begin, child.output.find('\n', begin) - begin);
  if (stage == probe::kDone && !child.signal && !child.exit_code) return {};
  if (stage.empty() || stage == probe::kDone) stage = "at its end";
  if (child.timed_out) return "did not answer within " + std::to_string(timeout().count()) + " s " + stage;
  if (!child.status_known) return "crashed or left the process " + stage;
  if (child.signal) return "crashed with " + platform::signal_name(child.signal) + " " + stage;
  return "left the process with exit code " + std::to_string(child.exit_code) + " " + stage;
}
}  // namespace

namespace {
std::string package_of(const std::string& name) { return name.empty() ? "it" : "dovetail-" + name; }

// Opens the library of this key in a child process, unless that went well since the machine started.
void open_in_child(const std::string& key, const std::string& name, const std::string& library,
                   const std::vector<std::string>& search, const Backend* with_backend) {
  Memory memory;
  if (memory.knows(key)) {
    if (logs(Log::loader)) log(Log::loader, 2, library + " was probed since the machine started");
    return;
  }
  std::vector<std::string> command{platform::own_folder() + "/" + platform::program_name("dovetail-probe"),
                                   library};
  command.insert(command.end(), search.begin(), search.end());
  if (with_backend) {
    command.insert(command.end(), {probe::kPackOf, with_backend->library});
    command.insert(command.end(), with_backend->search.begin(), with_backend->search.end());
  }
  const auto begin = std::chrono::steady_clock::now();
  const platform::Ended child = platform::run_process(command, timeout());
  if (!child.start_error.empty()) {  // a fault of this installation is no reason to go without every device
    log(Log::loader, 1,
        command[0] + " cannot be run (" + child.start_error + "): " + library + " is opened without a test");
    return;
  }
  const std::string wrong = what_went_wrong(child);
  if (!wrong.empty())
    throw Error(ErrorKind::runtime, library + ", opened in a child process, " + wrong + last_lines(child.errors),
                "reinstall or update " + package_of(name));
  if (logs(Log::loader)) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    log(Log::loader, 2, library + " was probed in a child process in " + std::to_string(ms.count()) + " ms");
  }
  memory.add(key);
}

// Throws where an earlier process left a note at `path`.
void check_note(const std::string& path, const std::string& name, const std::string& library) {
  const std::string note = platform::read_own_file(path);
  if (note.empty()) return;
  const std::string signal = cleaned(note.substr(0, note.find('\n')), 32);
  throw Error(ErrorKind::runtime,
              library + " crashed an earlier process with " + signal + " while it was opened there",
              "reinstall or update " + package_of(name) + ", or try it again after: rm '" + path + "'");
}
}  // namespace

ProbedOpening::ProbedOpening(const std::string& name, const std::string& library,
                             const std::vector<std::string>& search, const Backend* pack_of) {
  // A backend without a file of its own cannot be opened a second time, so the child sees less of its packs.
  const bool with_backend = pack_of && platform::is_file(pack_of->library) && !pack_of->interpreted;
  const std::string key = key_of(library) + (with_backend ? "+" + key_of(pack_of->library) : "");
  const std::string folder = platform::cache_folder(), note = folder + "/crashed-" + key;
  if (!folder.empty()) check_note(note, name, library);
  open_in_child(key, name, library, search, with_backend ? pack_of : nullptr);
  if (!folder.empty()) note_.emplace(note, library);
}
}  // namespace dovetail
