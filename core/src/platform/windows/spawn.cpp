#include "platform/windows/spawn.hpp"

#include <cstddef>

#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
// As the C library of the child takes it apart.
std::wstring quoted(const std::string& argument) {
  const std::wstring wide = to_wide(argument);
  if (!wide.empty() && wide.find_first_of(L" \t\n\v\"") == std::wstring::npos) return wide;
  std::wstring text = L"\"";
  size_t backslashes = 0;  // just before here
  for (const wchar_t c : wide) {
    if (c == L'"') text.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    text += c;
  }
  text.append(backslashes, L'\\');
  return text + L"\"";
}

class Inherited {  // the list of what a child inherits
 public:
  explicit Inherited(std::vector<HANDLE> files) : files_(std::move(files)) {
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    memory_.resize(size);
    if (!InitializeProcThreadAttributeList(get(), 1, 0, &size)) return;
    made_ = true;
    set_ = UpdateProcThreadAttribute(get(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, files_.data(),
                                     files_.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  ~Inherited() {
    if (made_) DeleteProcThreadAttributeList(get());
  }
  Inherited(const Inherited&) = delete;
  explicit operator bool() const { return set_; }
  LPPROC_THREAD_ATTRIBUTE_LIST get() { return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data()); }

 private:
  std::vector<HANDLE> files_;
  std::vector<std::byte> memory_;
  bool made_ = false, set_ = false;
};
}  // namespace

Pipe::Pipe() {
  HANDLE reading = nullptr, writing = nullptr;
  if (!CreatePipe(&reading, &writing, nullptr, DWORD(kMostKept))) return;
  reading_ = Handle(reading), writing_ = Handle(writing);
  SetHandleInformation(writing, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
}

bool Pipe::drain(std::string& to) {
  char bytes[kMostKept / 2];
  DWORD ready = 0, n = 0;
  if (!PeekNamedPipe(reading_.get(), nullptr, 0, nullptr, &ready, nullptr) || !ready ||
      !ReadFile(reading_.get(), bytes, sizeof bytes, &n, nullptr))
    return false;
  to.append(bytes, n);
  if (to.size() > kMostKept) to.erase(0, to.size() - kMostKept);
  return true;
}

Handle spawn(const Spawn& what) {
  SECURITY_ATTRIBUTES inherit{sizeof inherit, nullptr, TRUE};
  const Handle nothing(
      CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit, OPEN_EXISTING, 0, nullptr));
  Inherited inherited({nothing.get(), what.output, what.errors});
  if (!nothing || !inherited) return {};
  std::wstring line;
  for (const std::string& argument : what.command) line += (line.empty() ? L"" : L" ") + quoted(argument);
  STARTUPINFOEXW start{};
  start.StartupInfo.cb = sizeof start;
  start.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  start.StartupInfo.hStdInput = nothing.get();
  start.StartupInfo.hStdOutput = what.output, start.StartupInfo.hStdError = what.errors;
  start.lpAttributeList = inherited.get();
  PROCESS_INFORMATION child{};
  if (!CreateProcessW(to_wide(what.command[0]).c_str(), line.data(), nullptr, nullptr, TRUE,
                      CREATE_NO_WINDOW | EXTENDED_STARTUPINFO_PRESENT, nullptr, nullptr, &start.StartupInfo,
                      &child))
    return {};
  CloseHandle(child.hThread);
  return Handle(child.hProcess);
}
}  // namespace dovetail::platform
