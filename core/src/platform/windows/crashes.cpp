// A note that a crash of this process leaves for the next process.
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "platform/platform.hpp"
#include "platform/windows/access.hpp"
#include "platform/windows/text.hpp"

namespace dovetail::platform {
namespace {
constexpr ULONG kStack = 64 << 10;  // left for the filter by a stack that overflows

// The state of the only CrashNote.
struct {
  std::wstring path;
  std::string text;
  OnlyUs* rights;
  LPTOP_LEVEL_EXCEPTION_FILTER before;
  void (*before_abort)(int);
  volatile bool open;  // a filter that the library installed may still call ours when the note is closed
} note;

void write_note(const std::string& name) {
  if (!note.open) return;
  const Handle file(
      CreateFileW(note.path.c_str(), GENERIC_WRITE, 0, note.rights->attributes(), CREATE_NEW, 0, nullptr));
  const std::string text = name + note.text;
  DWORD n = 0;
  if (file) WriteFile(file.get(), text.data(), DWORD(text.size()), &n, nullptr);
}

LONG WINAPI on_crash(EXCEPTION_POINTERS* crash) {
  write_note(signal_name(int(crash->ExceptionRecord->ExceptionCode)));
  return note.before ? note.before(crash) : EXCEPTION_CONTINUE_SEARCH;
}

void on_abort(int signal) {
  write_note("SIGABRT");
  std::signal(SIGABRT, note.before_abort);
  std::raise(signal);
}
}  // namespace

CrashNote::CrashNote(std::string path, const std::string& text) {
  note.path = to_wide_path(path);
  note.text = "\n" + text + "\n";
  static OnlyUs& rights = *new OnlyUs;
  note.rights = &rights;
  ULONG stack = kStack;
  SetThreadStackGuarantee(&stack);
  note.before = SetUnhandledExceptionFilter(on_crash);
  note.before_abort = std::signal(SIGABRT, on_abort);
  note.open = true;
}

CrashNote::~CrashNote() {
  note.open = false;
  // The library may have installed filters of its own meanwhile.
  const LPTOP_LEVEL_EXCEPTION_FILTER now = SetUnhandledExceptionFilter(note.before);
  if (now != on_crash) SetUnhandledExceptionFilter(now);
  void (*const abort_now)(int) = std::signal(SIGABRT, note.before_abort);
  if (abort_now != on_abort) std::signal(SIGABRT, abort_now);
}
}  // namespace dovetail::platform
