#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

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

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  return content.str();
}

bool replace_file(const std::string& path, const std::string& content) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string draft = path + "." + std::to_string(process_id());
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << content;
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(draft, path, error);
  if (!error) return true;
  std::filesystem::remove(draft, error);
  return false;
}

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/dovetail";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/dovetail" : std::string();
}

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}
}  // namespace dovetail::platform
