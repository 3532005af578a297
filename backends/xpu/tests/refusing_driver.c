/* In front of the OpenCL driver of SYCL's CPU device (LD_PRELOAD): launches of kernels answer with the error that
 * refuse() was given, as a driver does whose device is lost or has no memory left. SYCL finds its functions by
 * dlsym. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int32_t launch_function(void* queue, void* kernel, uint32_t dims, const size_t* offset,
                                const size_t* global, const size_t* local, uint32_t events,
                                const void* const* wait_for, void** event);
static launch_function* launch;
static atomic_int answer;

void refuse(int error) { answer = error; }

static int32_t refused_launch(void* queue, void* kernel, uint32_t dims, const size_t* offset, const size_t* global,
                              const size_t* local, uint32_t events, const void* const* wait_for, void** event) {
  const int32_t error = answer;
  return error ? error : launch(queue, kernel, dims, offset, global, local, events, wait_for, event);
}

void* dlsym(void* library, const char* name) {
  static void* (*next)(void*, const char*);
  if (!next) next = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  void* const found = next(library, name);
  if (!found || strcmp(name, "clEnqueueNDRangeKernel")) return found;
  launch = (launch_function*)found;
  return (void*)refused_launch;
}
