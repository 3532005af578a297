/* Maps the image of test_image.py as Dovetail does, and calls its functions. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void callback(int64_t n) { printf("called back with %ld\n", (long)n); }

int main(int argc, char** argv) {
  static char file[1 << 16];
  FILE* f = argc > 1 ? fopen(argv[1], "rb") : NULL;
  const size_t size = f ? fread(file, 1, sizeof file, f) : 0;
  char* at = mmap(NULL, sizeof file, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!size || at == MAP_FAILED) return 1;
  memcpy(at, file, size);
  __builtin___clear_cache(at, at + size);
  if (mprotect(at, sizeof file, PROT_READ | PROT_EXEC)) return 2;
  uint64_t entries[3];
  memcpy(entries, at + 72, sizeof entries);
  float x[16], y[16];
  for (int i = 0; i < 16; ++i) x[i] = (float)i;
  ((void (*)(float*, float*, int64_t, void (*)(int64_t)))(at + entries[0]))(x, y, 16, callback);
  for (int i = 0; i < 16; ++i)
    if (y[i] != (float)i * (1.5f + (float)(i % 8)) + 0.1f) return 3;
  int64_t (*pick)(int64_t) = (int64_t (*)(int64_t))(at + entries[1]);
  int64_t (*letter)(int64_t) = (int64_t (*)(int64_t))(at + entries[2]);
  for (int64_t k = 0; k < 6; ++k) printf("%ld%c", (long)pick(k), k < 5 ? ' ' : '\n');
  for (int64_t i = 0; i < 4; ++i) putchar((int)letter(i));
  putchar('\n');
  return 0;
}
