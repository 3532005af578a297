#include "platform/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace dovetail::platform {
namespace {
constexpr int kPlain = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;  // opening a FIFO would wait
constexpr time_t kTouchAfter = 3600;                         // a read is noted that long after the last one

bool open_to_others(const struct stat& status) { return status.st_mode & (S_IRWXG | S_IRWXO); }
}  // namespace

void FileLock::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

PrivateFolder::PrivateFolder(const std::string& path) : path_(path) {
  if (path.empty()) {
    error_ = "there is no folder for it: HOME is not set";
    return;
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const bool made = !mkdir(path.c_str(), S_IRWXU);
  folder_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  struct stat status;
  if (folder_ < 0 || fstat(folder_, &status)) error_ = path + ": " + std::strerror(errno);
  else if (status.st_uid != geteuid()) error_ = path + " belongs to another user";
  else if (open_to_others(status) && (!made || fchmod(folder_, S_IRWXU)))
    error_ = path + " is open to other users; correct it: chmod 700 '" + path + "'";
  if (error_.empty()) return;
  if (folder_ >= 0) close(folder_);
  folder_ = -1;
}

PrivateFolder::~PrivateFolder() {
  if (folder_ >= 0) close(folder_);
}

std::optional<std::string> PrivateFolder::read(const std::string& name, uint64_t most) const {
  const int file = folder_ < 0 ? -1 : openat(folder_, name.c_str(), O_RDONLY | kPlain);
  if (file < 0) return std::nullopt;
  std::optional<std::string> content;
  struct stat status;
  if (!fstat(file, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      uint64_t(status.st_size) <= most) {
    content.emplace(size_t(status.st_size), '\0');
    size_t read_so_far = 0;
    for (ssize_t n; (n = ::read(file, content->data() + read_so_far, content->size() - read_so_far)) > 0;)
      read_so_far += size_t(n);
    content->resize(read_so_far);
    if (time(nullptr) - status.st_mtime > kTouchAfter) futimens(file, nullptr);
  }
  close(file);
  return content;
}

std::string PrivateFolder::write(const std::string& name, std::string_view content) const {
  if (folder_ < 0) return error_;
  static std::atomic<unsigned> drafts{0};
  const std::string draft = name + "." + std::to_string(getpid()) + "." + std::to_string(drafts++) + ".part";
  const int file = openat(folder_, draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return std::strerror(errno);
  int error = 0;
  while (!error && !content.empty()) {
    const ssize_t n = ::write(file, content.data(), content.size());
    if (n >= 0) content.remove_prefix(size_t(n));
    else if (errno != EINTR) error = errno;
  }
  if (close(file) && !error) error = errno;
  if (!error && renameat(folder_, draft.c_str(), folder_, name.c_str())) error = errno;
  if (!error) return {};
  unlinkat(folder_, draft.c_str(), 0);
  return std::strerror(error);
}

void PrivateFolder::remove(const std::string& name) const {
  if (folder_ >= 0) unlinkat(folder_, name.c_str(), 0);
}

std::optional<FileLock> PrivateFolder::lock(const std::string& name) const {
  const int file = folder_ < 0 ? -1 : openat(folder_, name.c_str(), O_RDWR | O_CREAT | kPlain, 0600);
  FileLock lock(file);
  if (file < 0 || !flock(file, LOCK_EX | LOCK_NB)) return lock;
  if (errno == EWOULDBLOCK) return std::nullopt;
  return FileLock(-1);  // a file system without locks
}

std::vector<PrivateFolder::File> PrivateFolder::files() const {
  std::vector<File> found;
  const int again = folder_ < 0 ? -1 : openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = again < 0 ? nullptr : fdopendir(again);
  if (!listing) {
    if (again >= 0) close(again);
    return found;
  }
  while (const dirent* entry = readdir(listing)) {
    struct stat status;
    if (!fstatat(folder_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode))
      found.push_back({entry->d_name, uint64_t(status.st_blocks) * 512, int64_t(status.st_mtime)});
  }
  closedir(listing);
  return found;
}
}  // namespace dovetail::platform
