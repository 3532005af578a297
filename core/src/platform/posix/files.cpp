#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "platform/platform.hpp"

namespace dovetail::platform {
MappedFile::MappedFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status)) {
    error_ = std::strerror(errno);
  } else if (status.st_size > 0) {
    void* at = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (at == MAP_FAILED) error_ = std::strerror(errno);
    else bytes_ = {static_cast<const std::byte*>(at), size_t(status.st_size)};
  }
  if (file >= 0) close(file);
}
MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path made = std::filesystem::canonical(path, error);
  return error ? std::string() : made.string();
}

bool is_absolute(const std::string& path) { return path.starts_with('/'); }

bool is_writable_by_all(const std::string& path) {
  struct stat status;
  return !stat(path.c_str(), &status) && status.st_mode & S_IWOTH;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  return content.str();
}

std::string read_own_file(const std::string& path) {
  constexpr off_t most = 64 << 10;
  // O_NONBLOCK: opening a FIFO would wait for a writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return {};
  std::string content;
  struct stat status;
  if (!fstat(file, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      !(status.st_mode & (S_IWGRP | S_IWOTH)) && status.st_size <= most) {
    content.resize(size_t(status.st_size));
    const ssize_t n = ::read(file, content.data(), content.size());
    content.resize(n > 0 ? size_t(n) : 0);
  }
  close(file);
  return content;
}

bool replace_file(const std::string& path, const std::string& content) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::string draft = path + ".XXXXXX";
  const int file = mkstemp(draft.data());  // a new file that only this user can read or write
  if (file < 0) return false;
  const bool written = ::write(file, content.data(), content.size()) == ssize_t(content.size());
  if ((close(file) == 0) & written) {
    std::filesystem::rename(draft, path, error);
    if (!error) return true;
  }
  std::filesystem::remove(draft, error);
  return false;
}

void FileDraft::fail(int number) {
  if (error_.empty()) error_ = {std::strerror(number), number};
}

FileDraft::FileDraft(std::string path) : path_(std::move(path)) {
  if (is_folder(path_)) {
    fail(EISDIR);
    return;
  }
  static std::atomic<unsigned> drafts{0};
  do {  // a name that another process left behind is taken
    draft_ = path_ + "." + std::to_string(getpid()) + "." + std::to_string(drafts++) + ".part";
    file_ = open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) fail(errno);
}
FileDraft::~FileDraft() {
  if (file_ < 0) return;
  close(file_);
  unlink(draft_.c_str());
}

void FileDraft::write(std::string_view part) {
  while (error_.empty() && !part.empty()) {
    const ssize_t n = ::write(file_, part.data(), part.size());
    if (n >= 0) part.remove_prefix(size_t(n));
    else if (errno != EINTR) fail(errno);
  }
}

void FileDraft::commit() {
  if (file_ < 0) return;
  const bool failed = close(std::exchange(file_, -1)) != 0;
  if (error_.empty() && (failed || rename(draft_.c_str(), path_.c_str()))) fail(errno);
  if (!error_.empty()) unlink(draft_.c_str());
}

FileError replace_file(const std::string& path, std::span<const std::string_view> parts) {
  FileDraft draft(path);
  for (const std::string_view part : parts) draft.write(part);
  draft.commit();
  return draft.error();
}

const char* own_variable(const char* name) {
#if defined(__GLIBC__)
  return secure_getenv(name);
#else
  return std::getenv(name);
#endif
}

std::string cache_folder() {
  const char* cache = own_variable("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/dovetail";
  const char* home = own_variable("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/dovetail" : std::string();
}

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}
}  // namespace dovetail::platform
