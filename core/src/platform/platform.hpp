// What the runtime asks of the operating system. The files of this folder are the only ones that may look at which
// one it is; `dovetail-probe` is built from them too, so they use nothing else of the runtime.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dovetail::platform {
// ---- libraries --------------------------------------------------------------------------------------------------

// Opens a library with its own symbols resolved at once and hidden from others. The libraries that it depends on
// and that lie in `search` are opened from there first. nullptr: `error` says why. Nothing is ever closed.
void* open_library(const std::string& path, const std::vector<std::string>& search, std::string& error);
void* find_symbol(void* library, const char* name);
// The folder of the library or executable that this code is in; empty where the system does not tell.
std::string own_folder();

// ---- files ------------------------------------------------------------------------------------------------------

class MappedFile {  // a file's bytes, read-only
 public:
  explicit MappedFile(const std::string& path);  // bytes() is empty and error() set where it cannot be read
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& error() const { return error_; }

 private:
  std::span<const std::byte> bytes_;
  std::string error_;
};

bool is_file(const std::string& path);
std::string read_file(const std::string& path);  // empty where it cannot be read
// Readers see the old content or the new one, never a part; folders are made. False where it cannot be written.
bool replace_file(const std::string& path, const std::string& content);
// "$XDG_CACHE_HOME/dovetail" or "~/.cache/dovetail"; empty where there is neither.
std::string cache_folder();
// Changes whenever the machine starts; empty where the system does not tell.
std::string boot_id();

// ---- processes --------------------------------------------------------------------------------------------------

struct Ended {              // how a child process ended
  std::string start_error;  // set: it did not start
  bool timed_out = false;   // it was killed
  int exit_code = 0;
  int signal = 0;  // 0: it exited
  std::string output, errors;
};
Ended run_process(const std::vector<std::string>& command, std::chrono::milliseconds timeout);
std::string signal_name(int signal);  // "SIGSEGV"
// A crash from now on leaves no core file.
void no_core_files();
// Ends the process at once: no destructor and no atexit handler runs.
[[noreturn]] void leave(int exit_code);
uint32_t process_id();
bool on_main_thread();  // of the process; false where the system has no such thread

// Handlers around fork(), in the order of registration in the child and the parent, in reverse before.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// ---- processors -------------------------------------------------------------------------------------------------

uint32_t cpu_count();  // that this process may use: its affinity mask, and the quota of its control group
// After it returned true, every other thread of the process has passed a full memory barrier since the call began.
// False: this system cannot do that.
bool barrier_on_all_threads();
// Addresses that nothing lies at: whoever reads or writes there crashes. They start on a page; nullptr: there are
// none.
void* reserve_addresses(uint64_t size);
void release_addresses(void* at, uint64_t size);
inline void relax() {  // in a loop that waits for another thread
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace dovetail::platform
