// The operating system, for the rest of the runtime. Only files of this folder may depend on which system it is.
// `dovetail-probe` is built from them, too, so they use no other part of the runtime.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::platform {
// ---- libraries --------------------------------------------------------------------------------------------------

struct LibraryError {
  enum Kind {
    other,
    missing,        // a library that it needs
    wrong_machine,  // it was built for another processor or another system
  };
  Kind kind = other;
  std::string text;
};
// Opens a library with its own symbols resolved at once and hidden from others. The libraries that it depends on
// and that lie in `search` are opened from there first. Returns nullptr and sets `error` on failure. Nothing is
// closed.
void* open_library(const std::string& path, const std::vector<std::string>& search, LibraryError& error);
void* find_symbol(void* library, const char* name);
std::string library_name(const std::string& stem);  // "libacme.so" of "acme"
std::string program_name(const std::string& stem);  // "acme.exe" where programs have a suffix
// The folder of the library or executable that this code is in; empty where the system has no such call.
std::string own_folder();

// A program's arguments in UTF-8.
std::vector<std::string> arguments(int argc, char** argv);

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
// Without symbolic links, absolute, with slashes; empty where there is no such file or folder.
std::string resolved(const std::string& path);
bool is_folder(const std::string& path);
bool is_absolute(const std::string& path);
// Every user of the machine may change it.
bool is_writable_by_all(const std::string& path);
std::string read_file(const std::string& path);  // empty where it cannot be read
// The content of a regular file of this user that no other user can write, of at most 64 KiB; else empty.
std::string read_own_file(const std::string& path);
// Readers see the old content or the new one, never a part. The folder is made; a link at `path` is replaced, not
// followed. False where the file cannot be written.
bool replace_file(const std::string& path, const std::string& content);
struct FileError {
  std::string text;  // empty: no error
  int number = 0;    // as errno has it; 0: unknown
  bool empty() const { return text.empty(); }
};
// The same in parts, with the rights of new files, in a folder that is there.
FileError replace_file(const std::string& path, std::span<const std::string_view> parts);
// A file that is written in parts and takes the place of `path` when it is complete. After an error the rest does
// nothing.
class FileDraft {
 public:
  explicit FileDraft(std::string path);
  ~FileDraft();  // without commit(): `path` stays as it was
  FileDraft(const FileDraft&) = delete;
  void write(std::string_view part);
  void commit();
  const FileError& error() const { return error_; }  // the first one

 private:
  void fail(int number);
  std::string path_, draft_;
  FileError error_;
  int file_ = -1;
};
// An environment variable; nullptr also in a program that runs with the rights of another user, which must neither
// write where its caller points nor run what that names.
const char* own_variable(const char* name);
// "$XDG_CACHE_HOME/dovetail" or "~/.cache/dovetail", on Windows "%LOCALAPPDATA%/dovetail/cache"; empty where there
// is neither.
std::string cache_folder();
// Changes whenever the machine starts; empty where the system has no such id.
std::string boot_id();

// ---- processes --------------------------------------------------------------------------------------------------

struct Ended {                // how a child process ended
  std::string start_error;    // set: it did not start
  bool timed_out = false;     // it was killed
  bool status_known = false;  // false: another part of this process took the status, or SIGCHLD is ignored
  int exit_code = 0;
  int signal = 0;              // 0: it exited; on Windows the code of the exception that ended it
  std::string output, errors;  // the last 64 KiB of each
};
Ended run_process(const std::vector<std::string>& command, std::chrono::milliseconds timeout);
// Returns a file for the output of this program alone: what libraries print to stdout goes to stderr from now on.
int take_stdout();
void write_all(int file, std::string_view text);
std::string signal_name(int signal);  // "SIGSEGV", "an access violation (0xc0000005)"
// While one lives, a crash of this process writes the signal's name and then `text`, a line each, to a new file at
// `path`. The handlers that were installed before still run. One at a time.
class CrashNote {
 public:
  CrashNote(std::string path, const std::string& text);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;

 private:
  std::unique_ptr<char[]> stack_;
};
// A crash from now on leaves no core file.
void no_core_files();
// Ends the process at once: no destructor and no atexit handler runs.
[[noreturn]] void leave(int exit_code);
uint32_t process_id();
uint64_t thread_id();   // the system's number of this thread, as Python's threading.get_native_id()
bool on_main_thread();  // of the process; false where the system has no such thread

// Handlers around fork(), in the order of registration in the child and the parent, in reverse before. Windows has
// no fork.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());
// Calls the function at the end of the program, while its other threads still run. Never on Windows, which ends
// them before any library's functions are called.
void at_exit(void (*function)());

// ---- limits -----------------------------------------------------------------------------------------------------

constexpr uint64_t kNoLimit = UINT64_MAX;
struct GroupMemory {
  uint64_t limit = kNoLimit;  // the smallest of the control group that this process is in and of those around it
  uint64_t used = 0;          // by all processes of the group with that limit, without cache that it can drop
};
// Control groups of version 1 and 2, job objects on Windows. `root`: where /proc and /sys are, for tests.
GroupMemory group_memory(const std::string& root = "");
// The quota in whole CPUs, rounded up; UINT32_MAX where there is none.
uint32_t group_cpus(const std::string& root = "");
// Bytes of memory that this process may use: the machine's, or the smaller limit of its control groups.
uint64_t host_memory();

// The memory left below the smallest limit of the control groups; kNoLimit if there is none.
uint64_t free_in_group();
// Gives memory that was freed, and that the C library keeps for later, back to the system.
void trim_heap();

// ---- processors -------------------------------------------------------------------------------------------------

// CPUs that this process may use: the smaller of its affinity mask and the quota of its control groups.
uint32_t cpu_count();
// How this thread rounds and whether it flushes subnormal numbers to zero; without the flags of past operations.
uint64_t float_control();
void set_float_control(uint64_t);
// Returns true after every other thread of the process has passed a full memory barrier since the call began; false
// where the system cannot do that.
bool barrier_on_all_threads();
// Reserves addresses without memory: reading or writing there crashes. They start on a page; nullptr: there are
// none.
void* reserve_addresses(uint64_t size);
void release_addresses(void* at, uint64_t size);

class CodeMemory {  // machine code, copied to pages of its own that can be read and run, but not written
 public:
  // at() is nullptr and error() set where the system refuses it.
  explicit CodeMemory(std::span<const std::byte> code);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  const std::byte* at() const { return at_; }
  const std::string& error() const { return error_; }

 private:
  std::byte* at_ = nullptr;
  size_t size_;
  std::string error_;
};
void add_to_perf_map(const std::string& lines);  // of this process; what cannot be written is left out
uint32_t page_size();
// Of this process, as in ELF files: 62 x86-64, 183 aarch64; 0: another, or a system without such code.
uint32_t elf_machine();

inline void relax() {  // for a loop that waits for another thread
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace dovetail::platform
