// The services of the operating system on Windows: child processes, files with any name, rights, locks, crashes.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "check.hpp"
#include "platform/paths.hpp"
#include "platform/platform.hpp"
#include "platform/private_folder.hpp"
#include "platform/windows/access.hpp"
#include "platform/windows/pe_file.hpp"
#include "platform/windows/text.hpp"
#include "platform/worker.hpp"

using namespace dovetail::platform;

namespace {
const char kName[] = "t\u00e4st \u65e5\u672c \U0001F600";  // letters of no code page, and a space

class Folder {
 public:
  Folder() : name_(from_path(std::filesystem::temp_directory_path()) + kName + std::to_string(process_id())) {
    std::filesystem::create_directories(to_path(name_));
  }
  ~Folder() { std::filesystem::remove_all(to_path(name_)); }
  const std::string& name() const { return name_; }
  std::string write(const std::string& file, const std::string& content) const {
    const std::string path = name_ + "/" + file;
    std::filesystem::create_directories(to_path(path).parent_path());
    std::ofstream(to_path(path), std::ios::binary) << content;
    return path;
  }

 private:
  std::string name_;
};

std::string self() {
  wchar_t path[MAX_PATH];
  return to_utf8({path, GetModuleFileNameW(nullptr, path, MAX_PATH)});
}
// This program again, in another role.
Ended child(std::vector<std::string> arguments, int seconds = 60) {
  arguments.insert(arguments.begin(), self());
  return run_process(arguments, std::chrono::seconds(seconds));
}
std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}
}  // namespace

// ---- text -------------------------------------------------------------------------------------------------------

TEST(text_goes_there_and_back) {
  CHECK_EQ(to_utf8(to_wide(kName)), kName);
  CHECK_EQ(to_utf8(std::wstring_view()), "");
  CHECK(error_text(ERROR_MOD_NOT_FOUND).ends_with("(error 126)"));
}

// ---- processes --------------------------------------------------------------------------------------------------

TEST(how_a_child_ends) {
  const Ended left = child({"--exit", "3"});
  CHECK(left.status_known && !left.timed_out && !left.signal);
  CHECK_EQ(left.exit_code, 3);
  CHECK_EQ(left.output, "out\n");
  CHECK_EQ(left.errors, "err\n");
  const Ended crashed = child({"--crash"});
  CHECK_EQ(signal_name(crashed.signal), "an access violation (0xc0000005)");
  CHECK(child({"--hang"}, 1).timed_out);
  const Ended missing = run_process({"C:/nowhere/program.exe"}, std::chrono::seconds(20));
  CHECK(missing.start_error.find("(error ") != std::string::npos);
}

TEST(only_the_end_of_the_output_is_kept) {
  const Ended ended = child({"--print", "3000000"});
  CHECK(ended.output.size() <= 64 << 10 && ended.output.ends_with("last\n"));
}

TEST(arguments_arrive_as_they_were) {
  const std::vector<std::string> all{"plain",           "",    "with space", "a\"quote", "back\\slash\\",
                                     "both\\\" \\\\\"", kName, "tab\tand\\ "};
  std::string expected;
  for (const std::string& argument : all) expected += "[" + argument + "]\n";
  std::vector<std::string> given = all;
  given.insert(given.begin(), "--echo");
  CHECK_EQ(child(given).output, expected);
}

TEST(stdout_can_be_taken) {
  const Ended ended = child({"--take-stdout"});
  CHECK_EQ(ended.output, "own\nline\n");
  CHECK_EQ(ended.errors, "library\n");
}

TEST(a_worker_says_why_there_is_none) {
  std::string error;
  CHECK(!Worker::start({self()}, -1, error));
  CHECK(error.find("Windows has no toolchains: unset DOVETAIL_TOOLCHAINS") == 0);
}

// ---- files ------------------------------------------------------------------------------------------------------

TEST(files_of_any_name) {
  const Folder folder;
  const std::string path = folder.write("sub/\u00fc.bin", "con\r\ntent\x1a");
  CHECK(is_file(path) && !is_folder(path) && is_folder(folder.name()) && !is_file(folder.name()));
  CHECK(is_absolute(path) && is_absolute("C:\\x") && is_absolute("//server/share"));
  CHECK(!is_absolute("x") && !is_absolute("C:x") && !is_absolute(""));
  CHECK_EQ(text_of(MappedFile(path)), "con\r\ntent\x1a");
  CHECK_EQ(read_file(path), "con\r\ntent\x1a");
  const MappedFile missing(folder.name() + "/missing");
  CHECK(missing.bytes().empty() && !missing.error().empty());
  const std::string empty = folder.write("empty", "");
  CHECK(MappedFile(empty).error().empty());
  CHECK_EQ(read_file(folder.name() + "/missing"), "");
}

TEST(paths_longer_than_the_old_limit) {
  const Folder folder;
  std::string path = folder.name();
  for (int i = 0; i < 6; ++i) path += "/" + std::string(60, char('a' + i));
  for (size_t at = folder.name().size(); at < path.size(); at += 61)
    CHECK(CreateDirectoryW(to_wide_path(path.substr(0, at + 61)).c_str(), nullptr));
  CHECK(replace_file(path + "/file", std::vector<std::string_view>{"far ", "away"}).empty());
  CHECK_EQ(read_file(path + "/file"), "far away");
  CHECK(DeleteFileW(to_wide_path(path + "/file").c_str()));  // std::filesystem removes nothing there
  for (; path != folder.name(); path.erase(path.rfind('/'))) CHECK(RemoveDirectoryW(to_wide_path(path).c_str()));
}

TEST(a_file_is_replaced_whole) {
  const Folder folder;
  const std::string path = folder.write("file", "old");
  {
    FileDraft draft(path);
    draft.write("half");
  }
  CHECK_EQ(read_file(path), "old");
  FileDraft draft(path);
  draft.write("n"), draft.write("ew");
  draft.commit();
  CHECK(draft.error().empty());
  CHECK_EQ(read_file(path), "new");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(to_path(folder.name()))) ++files;
  CHECK_EQ(files, 1u);
  CHECK(!FileDraft(folder.name() + "/nowhere/file").error().empty());
}

TEST(only_own_files_are_believed) {
  const Folder folder;
  const std::string path = folder.name() + "/new/probed";
  CHECK(replace_file(path, "content"));
  CHECK_EQ(read_own_file(path), "content");
  CHECK(!is_writable_by_all(path));
  CHECK_EQ(read_own_file(folder.write("large", std::string((64 << 10) + 1, 'x'))), "");
  CHECK_EQ(read_own_file(folder.name()), "");
  // Rights for every user of the machine.
  PSECURITY_DESCRIPTOR all = nullptr;
  CHECK(ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;;FA;;;WD)", SDDL_REVISION_1, &all, nullptr));
  CHECK(SetFileSecurityW(to_wide_path(path).c_str(), DACL_SECURITY_INFORMATION, all));
  LocalFree(all);
  CHECK(is_writable_by_all(path));
  CHECK_EQ(read_own_file(path), "");
}

TEST(a_private_folder) {
  const Folder parent;
  const PrivateFolder folder(parent.name() + "/private/objects");
  CHECK_EQ(folder.error(), "");
  CHECK(!folder.read("a", 100));
  CHECK_EQ(folder.write("a", "one"), "");
  CHECK_EQ(folder.write("a", std::string("t\0wo", 4)), "");
  CHECK_EQ(folder.read("a", 100).value(), std::string("t\0wo", 4));
  CHECK(!folder.read("a", 3));
  CHECK_EQ(folder.files().size(), 1u);
  CHECK(folder.files()[0].name == "a" && folder.files()[0].used > 1'600'000'000);
  folder.remove("a");
  CHECK(folder.files().empty());

  // Another open of the same file has no lock, in this process or another.
  std::optional<FileLock> lock = folder.lock("lock");
  CHECK(lock && lock->file() >= 0);
  CHECK(!folder.lock("lock"));
  CHECK_EQ(child({"--lock", parent.name() + "/private/objects"}).output, "taken\n");
  lock->close_file();
  CHECK_EQ(child({"--lock", parent.name() + "/private/objects"}).output, "free\n");
}

TEST(a_folder_that_others_can_read_is_none) {
  const Folder parent;
  const std::string path = parent.name() + "/open";
  PSECURITY_DESCRIPTOR all = nullptr;
  CHECK(ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;;FA;;;OW)(A;;FR;;;WD)", SDDL_REVISION_1, &all,
                                                             nullptr));
  SECURITY_ATTRIBUTES rights{sizeof rights, all, FALSE};
  CHECK(CreateDirectoryW(to_wide(path).c_str(), &rights));
  CHECK(SetFileSecurityW(to_wide(path).c_str(), DACL_SECURITY_INFORMATION, all));
  LocalFree(all);
  const PrivateFolder folder(path);
  CHECK(folder.error().find("is open to other users; correct it: icacls") != std::string::npos);
  CHECK(!folder.read("a", 100) && !folder.write("a", "x").empty());
  CHECK(!PrivateFolder(parent.write("file", "")).error().empty());
}

TEST(variables_are_utf8) {
  SetEnvironmentVariableW(L"DOVETAIL_TEST", to_wide(kName).c_str());
  CHECK_EQ(std::string(own_variable("DOVETAIL_TEST")), kName);
  CHECK(!own_variable("DOVETAIL_TEST_THAT_IS_NOT_SET"));
  SetEnvironmentVariableW(L"XDG_CACHE_HOME", L"relative");
  SetEnvironmentVariableW(L"LOCALAPPDATA", L"C:\\users\\x");
  CHECK_EQ(cache_folder(), "C:\\users\\x/dovetail/cache");
  SetEnvironmentVariableW(L"XDG_CACHE_HOME", L"C:\\cache");
  CHECK_EQ(cache_folder(), "C:\\cache/dovetail");
  CHECK(!boot_id().empty());
  CHECK_EQ(boot_id(), boot_id());
}

// ---- crashes ----------------------------------------------------------------------------------------------------

TEST(a_crash_leaves_a_note) {
  const Folder folder;
  for (const auto& [role, expected] :
       {std::pair<std::string, std::string>{"--note-crash", "an access violation"}, {"--note-abort", "SIGABRT"}}) {
    const std::string path = folder.name() + "/" + role;
    const Ended ended = child({role, path});
    CHECK(ended.signal || ended.exit_code);
    const std::string note = read_own_file(path);
    CHECK(note.starts_with(expected) && note.ends_with("\nacme.dll\n"));
  }
  CHECK_EQ(child({"--note-closed", folder.name() + "/closed"}).exit_code, 0);
  CHECK(!is_file(folder.name() + "/closed"));
}

// ---- libraries --------------------------------------------------------------------------------------------------

TEST(what_a_dll_needs) {
  const MappedFile file(self());
  const PeFile pe = read_pe(file.bytes());
  CHECK(pe.is_pe && pe.machine == IMAGE_FILE_MACHINE_AMD64);
  CHECK(std::ranges::count(pe.needed, "KERNEL32.dll") == 1);
  // Anything may be in the file: every prefix of it, and every byte of the headers changed.
  for (size_t n = 0; n < 4096; n += 7) read_pe(file.bytes().first(n));
  std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
  for (size_t i = 0; i < 1024; ++i) {
    const std::byte was = bytes[i];
    for (const int value : {0, 0x7f, 0xff}) bytes[i] = std::byte(value), read_pe(bytes);
    bytes[i] = was;
  }
}

// ---- limits and processors --------------------------------------------------------------------------------------

TEST(what_this_process_may_use) {
  CHECK(host_memory() > uint64_t{1} << 28 && host_memory() < uint64_t{1} << 50);
  CHECK(cpu_count() >= 1 && cpu_count() <= 4096);
  CHECK(barrier_on_all_threads());
  CHECK(page_size() == 4096);
  CHECK(SetProcessAffinityMask(GetCurrentProcess(), 1));
  CHECK_EQ(cpu_count(), 1u);
}

TEST(addresses_without_memory) {
  void* const at = reserve_addresses(uint64_t{1} << 36);
  CHECK(at && uintptr_t(at) % page_size() == 0);
  MEMORY_BASIC_INFORMATION info{};
  CHECK(VirtualQuery(at, &info, sizeof info) && info.State == MEM_RESERVE);
  release_addresses(at, uint64_t{1} << 36);
}

TEST(code_can_be_run_but_not_written) {
  const unsigned char bytes[] = {0xb8, 42, 0, 0, 0, 0xc3};  // return 42
  const CodeMemory code(std::as_bytes(std::span(bytes)));
  CHECK_EQ(code.error(), "");
  CHECK_EQ(reinterpret_cast<int (*)()>(reinterpret_cast<uintptr_t>(code.at()))(), 42);
  MEMORY_BASIC_INFORMATION info{};
  CHECK(VirtualQuery(code.at(), &info, sizeof info) && info.Protect == PAGE_EXECUTE_READ);
}

TEST(how_this_thread_rounds) {
  const uint64_t before = float_control();
  set_float_control(before | 0x8040);
  CHECK_EQ(float_control(), before | 0x8040);
  set_float_control(before);
  CHECK_EQ(float_control(), before);
}

// ---- the roles of a child ---------------------------------------------------------------------------------------

namespace {
int in_role(const std::vector<std::string>& all) {
  const std::string &role = all[1], &path = all.back();
  const auto crash = [] {
    volatile uintptr_t nowhere = 8;
    *reinterpret_cast<volatile int*>(nowhere) = 0;
  };
  if (role == "--exit") return write_all(1, "out\n"), write_all(2, "err\n"), std::atoi(path.c_str());
  if (role == "--echo") {
    for (size_t i = 2; i < all.size(); ++i) write_all(1, "[" + all[i] + "]\n");
  } else if (role == "--print") {
    write_all(1, std::string(size_t(std::atoi(path.c_str())), 'x') + "last\n");
  } else if (role == "--take-stdout") {
    const int own = take_stdout();
    std::puts("library");
    std::fflush(stdout);
    write_all(own, "own\nline\n");
    leave(0);
  } else if (role == "--crash") {
    no_core_files();
    crash();
  } else if (role == "--hang") {
    Sleep(60'000);
  } else if (role == "--lock") {
    write_all(1, PrivateFolder(path).lock("lock") ? "free\n" : "taken\n");
  } else if (role.starts_with("--note")) {
    no_core_files();
    {
      const CrashNote closed(path, "closed");
    }
    if (role == "--note-closed") return 0;
    const CrashNote note(path, "acme.dll");
    role == "--note-abort" ? std::abort() : crash();
  }
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> all = arguments(argc, argv);
  if (all.size() > 1 && all[1].starts_with("--")) {
    _setmode(1, _O_BINARY), _setmode(2, _O_BINARY);
    return in_role(all);
  }
  return check::run(argc, argv);
}
