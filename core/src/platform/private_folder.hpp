// A folder that only this user can read or write.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dovetail::platform {
class FileLock {  // held by this process and by those that hold a copy of its file, until the last one lets go
 public:
  explicit FileLock(int file) : file_(file) {}
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~FileLock() { close_file(); }
  int file() const { return file_; }
  void close_file();

 private:
  int file_;
};

// Names of files have no slash. Nothing throws but std::bad_alloc.
class PrivateFolder {
 public:
  struct File {
    std::string name;
    uint64_t bytes;  // on the disk
    int64_t used;    // when it was last read or written, in seconds
  };
  // Makes it where it is missing. Where it cannot be made, or another user owns it or may read or write it, error()
  // says so, and every function does nothing.
  explicit PrivateFolder(const std::string& path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  const std::string& error() const { return error_; }
  // The content of a regular file of at most so many bytes; nullopt where there is none.
  std::optional<std::string> read(const std::string& name, uint64_t most) const;
  // Readers see the old content or the new one, never a part. Returns the error; empty: none.
  std::string write(const std::string& name, std::string_view content) const;
  void remove(const std::string& name) const;
  // An exclusive lock; nullopt where another one has it. Without a file where this folder has no locks.
  std::optional<FileLock> lock(const std::string& name) const;
  std::vector<File> files() const;

 private:
  int folder_ = -1;
  std::string path_;  // for systems that do not look names up in an open folder
  std::string error_;
};
}  // namespace dovetail::platform
