// A child process with its output collected.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "platform/platform.hpp"
#include "platform/windows/spawn.hpp"
#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
constexpr DWORD kFirstFault = 0xC0000000;  // the codes of exceptions that end a process
}

Ended run_process(const std::vector<std::string>& command, std::chrono::milliseconds timeout) {
  Ended ended;
  Pipe output, errors;
  if (!output || !errors) {
    ended.start_error = last_error();
    return ended;
  }
  const Handle child = spawn({command, output.writing(), errors.writing()});
  if (!child) {
    ended.start_error = last_error();
    return ended;
  }
  output.close_writing(), errors.close_writing();
  const auto drain = [&] { return int{output.drain(ended.output)} | int{errors.drain(ended.errors)}; };
  // Pipes cannot be waited for together with a process, hence the look at them between short waits.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (WaitForSingleObject(child.get(), drain() ? 0 : 10) == WAIT_TIMEOUT) {
    if (std::chrono::steady_clock::now() < deadline) continue;
    ended.timed_out = true;
    TerminateProcess(child.get(), 1);
    WaitForSingleObject(child.get(), INFINITE);
  }
  // Read what the child wrote just before its end. The bound stops a grandchild that writes without end.
  for (int i = 0; i < 16 && drain();) ++i;
  DWORD code = 0;
  ended.status_known = GetExitCodeProcess(child.get(), &code);
  if (ended.timed_out) return ended;
  if (code >= kFirstFault) ended.signal = int(code);
  else ended.exit_code = int(code);
  return ended;
}

// Under the number 1 and for functions of the system, which have a list of their own.
int take_stdout() {
  std::fflush(stdout);
  const int own = _dup(1);
  _setmode(own, _O_BINARY);
  SetHandleInformation(HANDLE(_get_osfhandle(own)), HANDLE_FLAG_INHERIT, 0);
  _dup2(2, 1);
  SetStdHandle(STD_OUTPUT_HANDLE, GetStdHandle(STD_ERROR_HANDLE));
  return own;
}

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const int n = _write(file, text.data(), unsigned(std::min(text.size(), size_t{1} << 30)));
    if (n <= 0) return;
    text.remove_prefix(size_t(n));
  }
}

std::string signal_name(int signal) {
  const auto name = [&] {
    switch (DWORD(signal)) {
      case EXCEPTION_ACCESS_VIOLATION: return "an access violation";
      case EXCEPTION_IN_PAGE_ERROR: return "a page that cannot be read";
      case EXCEPTION_ILLEGAL_INSTRUCTION: return "an illegal instruction";
      case EXCEPTION_PRIV_INSTRUCTION: return "a privileged instruction";
      case EXCEPTION_DATATYPE_MISALIGNMENT: return "a misaligned access";
      case EXCEPTION_INT_DIVIDE_BY_ZERO: return "a division by zero";
      case EXCEPTION_STACK_OVERFLOW: return "a stack overflow";
      case 0xC0000135: return "a DLL that is missing";
      case 0xC0000139: return "a function that a DLL lacks";
      case 0xC0000374: return "a damaged heap";
      case 0xC0000409: return "a check of its own";
      default: return "the exception";
    }
  }();
  char code[16];
  std::snprintf(code, sizeof code, " (0x%08x)", unsigned(signal));
  return name + std::string(code);
}

// Nor does the system show a window, start a debugger or report to anybody.
void no_core_files() {
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
  SetUnhandledExceptionFilter([](EXCEPTION_POINTERS* crash) -> LONG {
    TerminateProcess(GetCurrentProcess(), crash->ExceptionRecord->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
  });
}

void leave(int exit_code) {
  TerminateProcess(GetCurrentProcess(), UINT(exit_code));
  __builtin_unreachable();
}

uint32_t process_id() { return GetCurrentProcessId(); }
uint64_t thread_id() { return GetCurrentThreadId(); }
bool on_main_thread() { return false; }

void at_fork(void (*)(), void (*)(), void (*)()) {}
void at_exit(void (*)()) {}

// The C library's arguments are in the system's code page, which lacks most letters.
std::vector<std::string> arguments(int argc, char** argv) {
  int n = 0;
  wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &n);
  if (!wide) return {argv, argv + argc};
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i) all.push_back(to_utf8(wide[i]));
  LocalFree(wide);
  return all;
}
}  // namespace dovetail::platform
