#include "platform/private_folder.hpp"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "platform/paths.hpp"
#include "platform/platform.hpp"
#include "platform/windows/access.hpp"
#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
constexpr uint64_t kSecond = 10'000'000;           // in the system's units of time
constexpr uint64_t kSecondsTo1970 = 11644473600u;  // since 1601
constexpr uint64_t kTouchAfter = 3600;             // a read is noted that long after the last one

uint64_t number(const FILETIME& time) { return uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; }

bool is_plain(DWORD attributes) {
  return !(attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE));
}
}  // namespace

void FileLock::close_file() {
  if (file_ >= 0) _close(file_);
  file_ = -1;
}

PrivateFolder::PrivateFolder(const std::string& path) : path_(path) {
  if (path.empty()) {
    error_ = "there is no folder for it: LOCALAPPDATA is not set";
    return;
  }
  std::error_code ignored;
  std::filesystem::create_directories(to_path(path).parent_path(), ignored);
  OnlyUs rights;
  CreateDirectoryW(to_wide_path(path).c_str(), rights.attributes());
  // Not shared for removal: the folder stays that of this name while it is open.
  Handle folder(CreateFileW(to_wide_path(path).c_str(), FILE_LIST_DIRECTORY | READ_CONTROL,
                            FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                            FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  BY_HANDLE_FILE_INFORMATION info{};
  if (!folder || !GetFileInformationByHandle(folder.get(), &info)) {
    error_ = path + ": " + last_error();
  } else if (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT ||
             !(info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)) {
    error_ = path + " is no folder";
  } else if (const Access access = access_of(folder.get()); !access.own) {
    error_ = path + " belongs to another user";
  } else if (access.read_by_others || access.written_by_others) {
    error_ = path + " is open to other users; correct it: icacls \"" + path +
             "\" /inheritance:r /grant:r \"%USERNAME%:(OI)(CI)F\"";
  }
  if (error_.empty()) folder_ = _open_osfhandle(intptr_t(folder.release()), _O_RDONLY | _O_NOINHERIT);
}

PrivateFolder::~PrivateFolder() {
  if (folder_ >= 0) _close(folder_);
}

std::optional<std::string> PrivateFolder::read(const std::string& name, uint64_t most) const {
  if (folder_ < 0) return std::nullopt;
  const Handle file(CreateFileW(to_wide_path(path_ + "/" + name).c_str(), GENERIC_READ | FILE_WRITE_ATTRIBUTES,
                                kShared, nullptr, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  BY_HANDLE_FILE_INFORMATION info{};
  if (!file || !GetFileInformationByHandle(file.get(), &info)) return std::nullopt;
  const uint64_t size = uint64_t{info.nFileSizeHigh} << 32 | info.nFileSizeLow;
  if (!is_plain(info.dwFileAttributes) || !access_of(file.get()).own || size > most) return std::nullopt;
  std::string content(size_t(size), '\0');
  size_t read_so_far = 0;
  for (DWORD n; read_so_far < content.size() &&
                ReadFile(file.get(), content.data() + read_so_far,
                         DWORD(std::min<size_t>(content.size() - read_so_far, 1 << 30)), &n, nullptr) &&
                n > 0;)
    read_so_far += n;
  content.resize(read_so_far);
  FILETIME now;
  GetSystemTimeAsFileTime(&now);
  if (number(now) > number(info.ftLastWriteTime) + kTouchAfter * kSecond)
    SetFileTime(file.get(), nullptr, nullptr, &now);
  return content;
}

// A draft inherits the folder's rights.
std::string PrivateFolder::write(const std::string& name, std::string_view content) const {
  if (folder_ < 0) return error_;
  return replace_file(path_ + "/" + name, std::span(&content, 1)).text;
}

void PrivateFolder::remove(const std::string& name) const {
  if (folder_ >= 0) DeleteFileW(to_wide_path(path_ + "/" + name).c_str());
}

std::optional<FileLock> PrivateFolder::lock(const std::string& name) const {
  if (folder_ < 0) return FileLock(-1);
  Handle file(CreateFileW(to_wide_path(path_ + "/" + name).c_str(), GENERIC_READ | GENERIC_WRITE, kShared, nullptr,
                          OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  if (!file) return FileLock(-1);
  OVERLAPPED at{};
  const bool locked = LockFileEx(file.get(), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at);
  if (!locked && (GetLastError() == ERROR_LOCK_VIOLATION || GetLastError() == ERROR_IO_PENDING))
    return std::nullopt;
  if (!locked) return FileLock(-1);  // a file system without locks
  return FileLock(_open_osfhandle(intptr_t(file.release()), _O_RDWR | _O_NOINHERIT));
}

std::vector<PrivateFolder::File> PrivateFolder::files() const {
  std::vector<File> found;
  if (folder_ < 0) return found;
  WIN32_FIND_DATAW entry;
  const HANDLE listing = FindFirstFileW(to_wide_path(path_ + "/*").c_str(), &entry);
  if (listing == INVALID_HANDLE_VALUE) return found;
  do {
    if (!is_plain(entry.dwFileAttributes)) continue;
    const uint64_t size = uint64_t{entry.nFileSizeHigh} << 32 | entry.nFileSizeLow;
    const int64_t used = int64_t(number(entry.ftLastWriteTime) / kSecond) - int64_t(kSecondsTo1970);
    found.push_back({to_utf8(std::wstring_view(entry.cFileName)), (size + 4095) / 4096 * 4096, used});
  } while (FindNextFileW(listing, &entry));
  FindClose(listing);
  return found;
}
}  // namespace dovetail::platform
