/* A program without Python: how long it takes to open and to run, and its memory. deploy.py builds and calls it.
 *
 *   deploy DEVICE LIBRARY MODEL TRUST SECONDS [NAME=SIZE...]
 *
 * Inputs are ones, of the sizes that have these names. Prints one line of JSON. */
#include <dovetail/runtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(dvr_status status) {
  if (status == DVR_OK) return;
  dvr_error_info error = {.struct_size = sizeof error};
  dvr_last_error(&error);
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

static int64_t size_of(const dvr_value_info* v, uint32_t axis, int n, char** sizes) {
  if (v->shape[axis] >= 0) return v->shape[axis];
  for (int i = 0; i < n; ++i) {
    const size_t length = strlen(v->size_names[axis]);
    if (!strncmp(sizes[i], v->size_names[axis], length) && sizes[i][length] == '=')
      return atoll(sizes[i] + length + 1);
  }
  fprintf(stderr, "the size of %s's axis %u is missing\n", v->name, axis);
  exit(1);
}

static void make_input(dvr_device* device, dvr_program* program, uint32_t i, int n, char** sizes, dvr_tensor* out) {
  dvr_value_info v = {.struct_size = sizeof v};
  check(dvr_program_input(program, i, &v));
  int64_t shape[DVT_MAX_NDIM], count = 1;
  for (uint32_t axis = 0; axis < v.ndim; ++axis) count *= shape[axis] = size_of(&v, axis, n, sizes);
  const size_t item = v.dtype.bits / 8;
  char* data = calloc((size_t)count + 1, item);
  if (!data) exit(1);
  for (int64_t k = 0; k < count; ++k) {
    const float one = 1;
    if (v.dtype.code == DVT_FLOAT && item == 4) memcpy(data + 4 * k, &one, 4);
    else if (v.dtype.code != DVT_FLOAT) data[(size_t)k * item] = 1; /* little-endian integers and bools */
  }
  check(dvr_from_host(device, v.dtype, v.ndim, shape, data, out));
  free(data);
}

static void run(dvr_program* program, dvr_device* device, dvr_tensor** in, uint32_t n_in, dvr_tensor* out,
                uint32_t n_out) {
  memset(out, 0, n_out * sizeof *out);
  check(dvr_program_run(program, device, in, n_in, NULL, out, n_out));
  check(dvr_synchronize(device));
  for (uint32_t i = 0; i < n_out; ++i) dvr_tensor_release(&out[i]);
}

/* Not getrusage(): its figure begins with the memory of the process that started this one. */
static int64_t peak_kilobytes(void) {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  long long found = 0;
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %lld", &found) == 1) break;
  if (status) fclose(status);
  return found;
}

static int compare(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

int main(int argc, char** argv) {
  if (argc < 6) return fprintf(stderr, "usage: %s DEVICE LIBRARY MODEL TRUST SECONDS [NAME=SIZE...]\n", argv[0]), 2;
  const double begin = now();
  check(dvr_load_backends((const char* const*)argv + 2, 1));
  dvr_device* device = dvr_find_device(argv[1]);
  if (!device) return fprintf(stderr, "there is no device %s\n", argv[1]), 1;
  const double loaded = now();
  dvr_program* program;
  check(dvr_program_open(argv[3], device, atoi(argv[4]) ? DVR_TRUST_CODE : 0, &program));
  const double opened = now();
  uint32_t n_in, n_out;
  check(dvr_program_counts(program, &n_in, &n_out));
  dvr_tensor arrays[64], *in[64], out[64];
  if (n_in > 64 || n_out > 64) return 1;
  for (uint32_t i = 0; i < n_in; ++i)
    in[i] = &arrays[i], make_input(device, program, i, argc - 6, argv + 6, &arrays[i]);
  const double first = now();
  run(program, device, in, n_in, out, n_out);
  const double ran = now();
  const int64_t peak = peak_kilobytes();
  enum { MOST = 100000 };
  static double times[MOST];
  int n = 0;
  for (const double end = now() + atof(argv[5]); n < MOST && (n < 5 || now() < end); ++n) {
    const double start = now();
    run(program, device, in, n_in, out, n_out);
    times[n] = now() - start;
  }
  qsort(times, (size_t)n, sizeof *times, compare);
  printf(
      "{\"load_ms\": %.3f, \"open_ms\": %.3f, \"first_ms\": %.3f, \"best_ms\": %.4f, \"median_ms\": %.4f, "
      "\"runs\": %d, "
      "\"peak_mb_of_one_run\": %.1f, \"peak_mb\": %.1f}\n",
      1e3 * (loaded - begin), 1e3 * (opened - loaded), 1e3 * (ran - first), 1e3 * times[0], 1e3 * times[n / 2], n,
      (double)peak / 1024, (double)peak_kilobytes() / 1024);
  return 0;
}
