/* Checks for the programs of this folder. */
#ifndef API_H
#define API_H
#include <dovetail/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline dvr_error_info last_error(void) {
  dvr_error_info e;
  memset(&e, 0, sizeof e);
  e.struct_size = sizeof e;
  dvr_last_error(&e);
  return e;
}

#define CHECK(condition)                                                                                      \
  do {                                                                                                        \
    if (!(condition)) {                                                                                       \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, last_error().message); \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)
#define OK(call) CHECK((call) == DVR_OK)
#ifdef ANY_MESSAGE /* of a program that later runtimes run: they may say it in other words */
#define READS(text, part) ((text) && (part))
#else
#define READS(text, part) strstr((text), (part))
#endif
#define SAYS(part) READS(last_error().message, (part))
#define FAILS(call, expected, part)                       \
  do {                                                    \
    CHECK((call) == (expected));                          \
    CHECK(last_error().kind == (expected) && SAYS(part)); \
  } while (0)

static const DLDataType f32 = {DVT_FLOAT, 32, 1}, i64 = {DVT_INT, 64, 1}, boolean = {DVT_BOOL, 8, 1};

/* By pointer, as shape and strides point into the struct. */
static inline void array(dvr_tensor* t, dvr_device* device, DLDataType dtype, uint32_t ndim, const int64_t* shape,
                         const void* data) {
  OK(dvr_from_host(device, dtype, ndim, shape, data, t));
}
static inline dvr_tensor nothing(void) {
  dvr_tensor t;
  memset(&t, 0, sizeof t);
  return t;
}
#endif
