#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "platform/paths.hpp"
#include "platform/platform.hpp"
#include "platform/windows/access.hpp"
#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
Handle open_to_read(const std::string& path, DWORD flags = 0) {
  return Handle(
      CreateFileW(to_wide_path(path).c_str(), GENERIC_READ, kShared, nullptr, OPEN_EXISTING, flags, nullptr));
}

// Of this process, so that no other process's draft has it.
std::wstring draft_of(const std::string& path) {
  static std::atomic<unsigned> drafts{0};
  return to_wide_path(path + "." + std::to_string(process_id()) + "." + std::to_string(drafts++) + ".part");
}
}  // namespace

// Not shared for writing: another process cannot change or cut off what is mapped here.
MappedFile::MappedFile(const std::string& path) {
  const Handle file(CreateFileW(to_wide_path(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                nullptr, OPEN_EXISTING, 0, nullptr));
  LARGE_INTEGER size{};
  if (!file || !GetFileSizeEx(file.get(), &size)) {
    error_ = last_error();
  } else if (size.QuadPart > 0) {
    const Handle mapping(CreateFileMappingW(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
    const void* at = mapping ? MapViewOfFile(mapping.get(), FILE_MAP_READ, 0, 0, 0) : nullptr;
    if (!at) error_ = last_error();
    else bytes_ = {static_cast<const std::byte*>(at), size_t(size.QuadPart)};
  }
}
MappedFile::~MappedFile() {
  if (!bytes_.empty()) UnmapViewOfFile(bytes_.data());
}

bool is_file(const std::string& path) {
  const DWORD found = GetFileAttributesW(to_wide_path(path).c_str());
  return found != INVALID_FILE_ATTRIBUTES && !(found & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE));
}

bool is_folder(const std::string& path) {
  const DWORD found = GetFileAttributesW(to_wide_path(path).c_str());
  return found != INVALID_FILE_ATTRIBUTES && found & FILE_ATTRIBUTE_DIRECTORY;
}

std::string resolved(const std::string& path) {
  const Handle file(CreateFileW(to_wide_path(path).c_str(), 0, kShared, nullptr, OPEN_EXISTING,
                                FILE_FLAG_BACKUP_SEMANTICS, nullptr));  // which folders need
  if (!file) return {};
  std::wstring name(GetFinalPathNameByHandleW(file.get(), nullptr, 0, FILE_NAME_NORMALIZED), L'\0');
  const DWORD size = GetFinalPathNameByHandleW(file.get(), name.data(), DWORD(name.size()), FILE_NAME_NORMALIZED);
  if (!size || size >= name.size()) return {};
  name.resize(size);
  std::ranges::replace(name, L'\\', L'/');
  std::string made = to_utf8(name);
  for (const std::string_view prefix : {"//?/UNC/", "//?/"})
    if (made.starts_with(prefix)) return (prefix.size() > 4 ? "//" : "") + made.substr(prefix.size());
  return made;
}

bool is_absolute(const std::string& path) {
  const bool drive = path.size() > 2 && path[1] == ':' && (path[2] == '/' || path[2] == '\\');
  return drive || path.starts_with("\\\\") || path.starts_with("//");
}

bool is_writable_by_all(const std::string& path) {
  const Handle file(
      CreateFileW(to_wide_path(path).c_str(), READ_CONTROL, kShared, nullptr, OPEN_EXISTING, 0, nullptr));
  return file && access_of(file.get()).written_by_all;
}

std::string read_file(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string read_own_file(const std::string& path) {
  constexpr LONGLONG most = 64 << 10;
  const Handle file = open_to_read(path, FILE_FLAG_OPEN_REPARSE_POINT);
  BY_HANDLE_FILE_INFORMATION info{};
  LARGE_INTEGER size{};
  if (!file || GetFileType(file.get()) != FILE_TYPE_DISK || !GetFileInformationByHandle(file.get(), &info) ||
      !GetFileSizeEx(file.get(), &size))
    return {};
  const Access access = access_of(file.get());
  if (info.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT) || size.QuadPart > most ||
      !access.own || access.written_by_others)
    return {};
  std::string content(size_t(size.QuadPart), '\0');
  DWORD n = 0;
  if (!ReadFile(file.get(), content.data(), DWORD(content.size()), &n, nullptr)) n = 0;
  content.resize(n);
  return content;
}

bool replace_file(const std::string& path, const std::string& content) {
  std::error_code ignored;
  std::filesystem::create_directories(to_path(path).parent_path(), ignored);
  const std::wstring draft = draft_of(path);
  OnlyUs rights;
  Handle file(CreateFileW(draft.c_str(), GENERIC_WRITE, 0, rights.attributes(), CREATE_NEW, 0, nullptr));
  if (!file) return false;
  DWORD n = 0;
  const bool written =
      WriteFile(file.get(), content.data(), DWORD(content.size()), &n, nullptr) && n == content.size();
  file.close();
  if (written && MoveFileExW(draft.c_str(), to_wide_path(path).c_str(), MOVEFILE_REPLACE_EXISTING)) return true;
  DeleteFileW(draft.c_str());
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
  std::wstring draft;
  do {  // a name that another process left behind is taken
    draft = draft_of(path_);
    file_ = _wopen(draft.c_str(), _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
  } while (file_ < 0 && errno == EEXIST);
  draft_ = to_utf8(draft);
  if (file_ < 0) fail(errno);
}
FileDraft::~FileDraft() {
  if (file_ < 0) return;
  _close(file_);
  DeleteFileW(to_wide(draft_).c_str());
}

void FileDraft::write(std::string_view part) {
  constexpr size_t most = size_t{1} << 30;  // the function takes an int
  while (error_.empty() && !part.empty()) {
    const int n = _write(file_, part.data(), unsigned(std::min(part.size(), most)));
    if (n >= 0) part.remove_prefix(size_t(n));
    else fail(errno);
  }
}

void FileDraft::commit() {
  if (file_ < 0) return;
  const bool failed = _close(std::exchange(file_, -1)) != 0;
  if (failed) fail(errno);
  const std::wstring draft = to_wide(draft_);
  if (error_.empty() && !MoveFileExW(draft.c_str(), to_wide_path(path_).c_str(), MOVEFILE_REPLACE_EXISTING))
    error_ = {last_error(), 0};  // a file that is mapped or open somewhere cannot be replaced
  if (!error_.empty()) DeleteFileW(draft.c_str());
}

FileError replace_file(const std::string& path, std::span<const std::string_view> parts) {
  FileDraft draft(path);
  for (const std::string_view part : parts) draft.write(part);
  draft.commit();
  return draft.error();
}

const char* own_variable(const char* name) {
  const std::wstring wide_name = to_wide(name);
  std::wstring value(256, L'\0');
  DWORD n;
  while ((n = GetEnvironmentVariableW(wide_name.c_str(), value.data(), DWORD(value.size()))) > value.size())
    value.resize(n);
  if (!n && GetLastError() == ERROR_ENVVAR_NOT_FOUND) return nullptr;
  value.resize(n);
  static std::mutex mutex;
  static auto& values = *new std::set<std::string>;  // callers have pointers into it
  const std::lock_guard guard(mutex);
  return values.insert(to_utf8(value)).first->c_str();
}

std::string cache_folder() {
  const char* cache = own_variable("XDG_CACHE_HOME");
  if (cache && is_absolute(cache)) return std::string(cache) + "/dovetail";
  const char* local = own_variable("LOCALAPPDATA");
  return local && is_absolute(local) ? std::string(local) + "/dovetail/cache" : std::string();
}

// The time at which the system started.
std::string boot_id() {
  struct {
    LARGE_INTEGER boot;
    BYTE rest[40];
  } times{};
  constexpr auto time_of_day = SYSTEM_INFORMATION_CLASS(3);
  if (NtQuerySystemInformation(time_of_day, &times, sizeof times, nullptr) < 0) return {};
  return std::to_string(times.boot.QuadPart);
}
}  // namespace dovetail::platform
