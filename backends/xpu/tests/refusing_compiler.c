/* In front of the OpenCL loader (LD_PRELOAD): counts the texts that are compiled, and spoils those that have the
 * word of OPENCL_REFUSE, so that the compiler refuses them. The function that OPENCL_HIDE names is not there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void* create_function(void* context, uint32_t n, const char** texts, const size_t* sizes, int32_t* error);
static create_function* create;
static atomic_int count;

int texts(void) { return count; }

/* The last text is the group's. */
static void* count_text(void* context, uint32_t n, const char** texts, const size_t* sizes, int32_t* error) {
  const char* const word = getenv("OPENCL_REFUSE");
  const char* spoiled[8];
  ++count;
  if (!word || n >= 8 || !strstr(texts[n - 1], word)) return create(context, n, texts, sizes, error);
  memcpy(spoiled, texts, n * sizeof *texts);
  spoiled[n] = "this is refused";
  return create(context, n + 1, spoiled, NULL, error);
}

void* dlsym(void* library, const char* name) {
  static void* (*next)(void*, const char*);
  const char* const hidden = getenv("OPENCL_HIDE");
  if (!next) next = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (hidden && !strcmp(name, hidden)) return NULL;
  void* const found = next(library, name);
  if (!found || strcmp(name, "clCreateProgramWithSource")) return found;
  create = (create_function*)found;
  return (void*)count_text;
}
