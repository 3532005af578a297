/* Gives main() its arguments in UTF-8, and a program that opens files fopen() for paths in UTF-8. The C library of
 * Windows has both in the code page of the machine alone. The programs of tests/runtime are compiled with
 * -Dmain=utf8_main -Dfopen=utf8_fopen. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
/* After the system's own header. */
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#undef main
#undef fopen

int utf8_main(int argc, char** argv);

FILE* utf8_fopen(const char* path, const char* mode) {
  wchar_t wide[1024], wide_mode[8];
  if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 1024) ||
      !MultiByteToWideChar(CP_UTF8, 0, mode, -1, wide_mode, 8))
    return NULL;
  return _wfopen(wide, wide_mode);
}

int main(void) {
  /* As Windows begins threads, and programs of other compilers: the x87 rounds long double to 53 bits. */
  const unsigned short x87 = 0x27f;
  __asm__ volatile("fldcw %0" : : "m"(x87));
  int argc = 0;
  wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &argc);
  char** const argv = calloc((size_t)argc + 1, sizeof *argv);
  if (!wide || !argv) return 2;
  for (int i = 0; i < argc; ++i) {
    const int size = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
    argv[i] = malloc((size_t)size);
    if (!argv[i] || !WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, argv[i], size, NULL, NULL)) return 2;
  }
  return utf8_main(argc, argv);
}
