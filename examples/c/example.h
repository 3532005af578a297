/* What the examples share: errors, and how a device and a program are opened. */
#ifndef EXAMPLE_H
#define EXAMPLE_H
#include <dovetail/runtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const DLDataType float32 = {DVT_FLOAT, 32, 1};

/* Ends the program with the runtime's message: what happened, what was expected, and the cure. */
static inline void check(dvr_status status) {
  if (status == DVR_OK) return;
  dvr_error_info error = {.struct_size = sizeof error};
  dvr_last_error(&error);
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

/* Loads a plugin and returns the device of that name. What cannot be loaded is in quarantine, with its cause. */
static inline dvr_device* open_device(const char* name, const char* library) {
  check(dvr_set_fallback(DVR_FALLBACK_ERROR)); /* never run on another device than this one */
  check(dvr_load_backends(&library, 1));
  dvr_device* device = dvr_find_device(name);
  if (device) return device;
  dvr_quarantined why = {.struct_size = sizeof why};
  if (dvr_quarantine(&why, 1)) fprintf(stderr, "%s: %s; %s\n", why.library, why.reason, why.cure);
  fprintf(stderr, "there is no device %s\n", name);
  exit(1);
}

/* A .dvt file, or a folder of `dovetail build`. Weights are mapped, and everything is looked up now. The machine
 * code of a folder is run where EXAMPLE_TRUST_CODE=1. */
static inline dvr_program* open_program(const char* path, dvr_device* device) {
  const char* trust = getenv("EXAMPLE_TRUST_CODE");
  dvr_program* program;
  check(dvr_program_open(path, device, trust && !strcmp(trust, "1") ? DVR_TRUST_CODE : 0, &program));
  return program;
}

/* Rows of numbers that a test can repeat: row i, column k has i + k / 8. */
static inline void fill_rows(float* x, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) x[i * columns + k] = (float)i + (float)k / 8;
}

/* The number of columns that the program's first input has. */
static inline int64_t columns_of(dvr_program* program) {
  dvr_value_info input = {.struct_size = sizeof input};
  check(dvr_program_input(program, 0, &input));
  if (input.ndim != 2 || memcmp(&input.dtype, &float32, sizeof float32) || input.shape[1] < 0) {
    fprintf(stderr, "the example runs programs of one float32 input of shape (rows, a fixed number of columns)\n");
    exit(1);
  }
  return input.shape[1];
}

/* Prints rows of a result in host memory. */
static inline void print_rows(const float* x, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) printf("%.6g%s", x[i * columns + k], k + 1 < columns ? " " : "\n");
}
#endif
