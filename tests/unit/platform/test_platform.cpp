// Services of the operating system: child processes, files of the cache, limits of control groups.
#include "platform/platform.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "check.hpp"

using namespace dovetail::platform;

namespace {
class Folder {
 public:
  Folder() {
    if (!mkdtemp(name_.data())) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(name_); }
  const std::string& name() const { return name_; }
  std::string write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = name_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    return file;
  }

 private:
  std::string name_ = (std::filesystem::temp_directory_path() / "dovetail-platform-XXXXXX").string();
};

Ended shell(const std::string& script, int seconds = 20) {
  return run_process({"/bin/sh", "-c", script}, std::chrono::seconds(seconds));
}

constexpr uint64_t kMiB = uint64_t{1} << 20;
}  // namespace

// ---- processes --------------------------------------------------------------------------------------------------

TEST(how_a_child_ends) {
  const Ended left = shell("echo out; echo err >&2; exit 3");
  CHECK(left.status_known && !left.timed_out);
  CHECK_EQ(left.exit_code, 3);
  CHECK_EQ(left.output, "out\n");
  CHECK_EQ(left.errors, "err\n");
  CHECK_EQ(shell("kill -SEGV $$").signal, SIGSEGV);
  CHECK(shell("sleep 60", 1).timed_out);
  const Ended missing = run_process({"/nowhere/program"}, std::chrono::seconds(20));
  CHECK(!missing.start_error.empty() || missing.exit_code == 127);  // POSIX allows both
}

TEST(a_child_that_the_kernel_reaps) {
  std::signal(SIGCHLD, SIG_IGN);
  const Ended ended = shell("echo done");
  std::signal(SIGCHLD, SIG_DFL);
  CHECK(!ended.timed_out);
  CHECK(!ended.status_known);
  CHECK_EQ(ended.output, "done\n");
}

TEST(only_the_end_of_the_output_is_kept) {
  const Ended ended = shell("head -c 3000000 /dev/zero; echo last; head -c 300000 /dev/zero >&2");
  CHECK(ended.output.size() <= 64 << 10 && ended.output.ends_with("last\n"));
  CHECK(ended.errors.size() <= 64 << 10);
}

// ---- files ------------------------------------------------------------------------------------------------------

TEST(only_own_files_are_believed) {
  const Folder folder;
  const std::string path = folder.name() + "/new/probed";
  CHECK(replace_file(path, "content"));
  CHECK_EQ(read_own_file(path), "content");

  chmod(path.c_str(), 0666);
  CHECK_EQ(read_own_file(path), "");
  chmod(path.c_str(), 0600);
  const std::string link = folder.name() + "/link", pipe = folder.name() + "/pipe";
  CHECK_EQ(symlink(path.c_str(), link.c_str()), 0);
  CHECK_EQ(read_own_file(link), "");
  CHECK_EQ(mkfifo(pipe.c_str(), 0600), 0);
  CHECK_EQ(read_own_file(pipe), "");  // and does not wait for a writer
  CHECK_EQ(read_own_file(folder.write("large", std::string((64 << 10) + 1, 'x'))), "");
  CHECK_EQ(read_own_file(folder.name()), "");
  // Only root may give a file away, and only where other users exist: a namespace may hold one.
  if (!chown(path.c_str(), 65534, 65534)) CHECK_EQ(read_own_file(path), "");
}

TEST(nothing_is_written_through_a_link) {
  const Folder folder;
  const std::string victim = folder.write("victim", "precious"), link = folder.name() + "/probed";
  for (const std::string& at : {link, link + "." + std::to_string(process_id())})
    CHECK_EQ(symlink(victim.c_str(), at.c_str()), 0);
  CHECK(replace_file(link, "content"));
  CHECK_EQ(read_file(victim), "precious");
  CHECK_EQ(read_own_file(link), "content");
}

TEST(a_draft_replaces_a_file_when_it_is_complete) {
  const Folder folder;
  const std::string path = folder.write("weights", "old");
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder.name()), {}); };
  {
    FileDraft dropped(path);
    dropped.write("new");
    CHECK_EQ(files(), 2);
  }
  CHECK_EQ(files(), 1);
  FileDraft draft(path);
  draft.write("ne");
  draft.write("w");
  CHECK_EQ(read_file(path), "old");
  draft.commit();
  CHECK(draft.error().empty());
  CHECK_EQ(read_file(path), "new");
  FileDraft nowhere(folder.name() + "/gone/weights");
  nowhere.write("new");
  nowhere.commit();
  CHECK_EQ(nowhere.error().text, "No such file or directory");
  CHECK_EQ(files(), 1);
}

TEST(a_crash_after_the_note_was_closed_leaves_none) {
  static struct sigaction ours;
  const Folder folder;
  const std::string path = folder.name() + "/note";
  const pid_t process = fork();
  if (!process) {
    no_core_files();
    {
      const CrashNote note(path, "a library");
      struct sigaction theirs{};  // a library that passes crashes with this signal
      theirs.sa_flags = SA_SIGINFO;
      theirs.sa_sigaction = [](int signal, siginfo_t* info, void* at) { ours.sa_sigaction(signal, info, at); };
      sigaction(SIGABRT, &theirs, &ours);
    }
    std::abort();
  }
  int status = 0;
  waitpid(process, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  CHECK(!std::filesystem::exists(path));
}

// ---- limits -----------------------------------------------------------------------------------------------------

TEST(limits_of_control_groups_of_version_2) {
  const Folder root;
  root.write("proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  root.write("proc/self/cgroup", "0::/user.slice/job\n");
  const std::string top = "sys/fs/cgroup/", slice = top + "user.slice/", job = slice + "job/";
  root.write(job + "memory.max", "max\n");
  root.write(job + "cpu.max", "400000 100000\n");
  CHECK_EQ(group_memory(root.name()).limit, kNoLimit);
  CHECK_EQ(group_cpus(root.name()), 4u);

  root.write(slice + "memory.max", std::to_string(512 * kMiB) + "\n");
  root.write(slice + "memory.current", std::to_string(200 * kMiB) + "\n");
  root.write(slice + "memory.stat", "anon 1\ninactive_file " + std::to_string(50 * kMiB) + "\n");
  root.write(slice + "cpu.max", "150000 100000\n");
  CHECK_EQ(group_memory(root.name()).limit, 512 * kMiB);
  CHECK_EQ(group_memory(root.name()).used, 150 * kMiB);
  CHECK_EQ(group_cpus(root.name()), 2u);

  root.write(job + "memory.high", std::to_string(256 * kMiB) + "\n");
  CHECK_EQ(group_memory(root.name()).limit, 256 * kMiB);
  root.write("proc/self/cgroup", "0::/../elsewhere\n");  // outside of the namespace's view
  root.write(top + "memory.max", std::to_string(64 * kMiB) + "\n");
  CHECK_EQ(group_memory(root.name()).limit, 64 * kMiB);
}

TEST(limits_of_control_groups_of_version_1) {
  const Folder root;
  root.write("proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
             "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro master:2 - cgroup cgroup rw,cpu,cpuacct\n"
             "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro master:5 - cgroup cgroup rw,memory\n");
  root.write("proc/self/cgroup", "4:memory:/docker/abc/inner\n1:cpuacct,cpu:/docker/abc\n0::/\n");
  const std::string memory = "sys/fs/cgroup/memory/", cpu = "sys/fs/cgroup/cpu,cpuacct/";
  CHECK_EQ(group_memory(root.name()).limit, kNoLimit);
  CHECK_EQ(group_cpus(root.name()), UINT32_MAX);

  root.write(memory + "inner/memory.limit_in_bytes", "9223372036854771712\n");  // none
  root.write(memory + "memory.limit_in_bytes", std::to_string(300 * kMiB) + "\n");
  root.write(memory + "memory.usage_in_bytes", std::to_string(100 * kMiB) + "\n");
  root.write(memory + "memory.stat", "total_inactive_file " + std::to_string(30 * kMiB) + "\n");
  CHECK_EQ(group_memory(root.name()).limit, 300 * kMiB);
  CHECK_EQ(group_memory(root.name()).used, 70 * kMiB);
  root.write(memory + "inner/memory.stat", "hierarchical_memory_limit " + std::to_string(90 * kMiB) + "\n");
  CHECK_EQ(group_memory(root.name()).limit, 90 * kMiB);

  root.write(cpu + "cpu.cfs_quota_us", "-1\n");
  root.write(cpu + "cpu.cfs_period_us", "100000\n");
  CHECK_EQ(group_cpus(root.name()), UINT32_MAX);
  root.write(cpu + "cpu.cfs_quota_us", "250000\n");
  CHECK_EQ(group_cpus(root.name()), 3u);
}

CHECK_MAIN
