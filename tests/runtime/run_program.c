/* Runs a program on a device, without Python: run_program DEVICE LIBRARY FILE.dvt IN.npy... OUT.npy... */
#include <dovetail/runtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* step) {
  dvr_error_info error = {.struct_size = sizeof error};
  dvr_last_error(&error);
  fprintf(stderr, "%s: %s\n", step, error.kind ? error.message : "failed");
  exit(1);
}

static const struct {
  const char* name; /* as NumPy writes it */
  DLDataType dtype;
} dtypes[] = {
    {"<f4", {DVT_FLOAT, 32, 1}}, {"<f8", {DVT_FLOAT, 64, 1}}, {"<f2", {DVT_FLOAT, 16, 1}},
    {"|b1", {DVT_BOOL, 8, 1}},   {"|i1", {DVT_INT, 8, 1}},    {"<i2", {DVT_INT, 16, 1}},
    {"<i4", {DVT_INT, 32, 1}},   {"<i8", {DVT_INT, 64, 1}},   {"|u1", {DVT_UINT, 8, 1}},
    {"<u2", {DVT_UINT, 16, 1}},  {"<u4", {DVT_UINT, 32, 1}},  {"<u8", {DVT_UINT, 64, 1}},
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* A row-major .npy file of version 1. */
static dvr_tensor read_array(dvr_device* device, const char* path) {
  FILE* file = fopen(path, "rb");
  unsigned char start[10];
  if (!file || fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY\x01", 7)) fail(path);
  const size_t size = start[8] + 256u * start[9];
  char header[4096];
  if (size >= sizeof header || fread(header, 1, size, file) != size) fail(path);
  header[size] = 0;
  int which = 0;
  while (which < N_DTYPES && !strstr(header, dtypes[which].name)) ++which;
  const char* at = strstr(header, "'shape': (");
  if (which == N_DTYPES || !at || strstr(header, "'fortran_order': True")) fail(path);
  int64_t shape[DVT_MAX_NDIM], n = 1;
  uint32_t ndim = 0;
  for (at += 10; *at != ')' && ndim < DVT_MAX_NDIM; at += *at == ',', at += *at == ' ') {
    char* end;
    n *= shape[ndim++] = strtoll(at, &end, 10);
    at = end;
  }
  const size_t bytes = (size_t)n * dtypes[which].dtype.bits / 8;
  void* data = malloc(bytes + 1);
  if (!data || fread(data, 1, bytes, file) != bytes) fail(path);
  fclose(file);
  dvr_tensor t;
  if (dvr_from_host(device, dtypes[which].dtype, ndim, shape, data, &t)) fail(path);
  free(data);
  t.view.shape = NULL; /* the struct is copied to the caller */
  return t;
}

static void write_array(const dvr_tensor* t, const char* path) {
  int which = 0;
  while (which < N_DTYPES && memcmp(&dtypes[which].dtype, &t->view.dtype, sizeof(DLDataType))) ++which;
  if (which == N_DTYPES) fail(path);
  char header[1024];
  int64_t n = 1;
  int used =
      snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtypes[which].name);
  for (int i = 0; i < t->view.ndim; ++i) {
    used += snprintf(header + used, sizeof header - (size_t)used, "%" PRId64 ", ", t->view.shape[i]);
    n *= t->view.shape[i];
  }
  used += snprintf(header + used, sizeof header - (size_t)used, ")}");
  while ((used + 11) % 64) header[used++] = ' ';
  header[used++] = '\n';
  const size_t bytes = (size_t)n * dtypes[which].dtype.bits / 8;
  void* data = malloc(bytes + 1);
  if (!data || dvr_read(t, data)) fail(path);
  const unsigned char start[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)used, (unsigned char)(used >> 8)};
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(start, 1, 10, file) != 10 || fwrite(header, 1, (size_t)used, file) != (size_t)used ||
      fwrite(data, 1, bytes, file) != bytes || fclose(file))
    fail(path);
  free(data);
}

static void expect_no_python(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "libpython") || strstr(line, "_core.")) fail(line);
  if (maps) fclose(maps);
}

int main(int argc, char** argv) {
  if (argc < 4) return fprintf(stderr, "usage: %s DEVICE LIBRARY FILE.dvt IN.npy... OUT.npy...\n", argv[0]), 2;
  if (dvr_load_backends((const char* const*)argv + 2, 1)) fail(argv[2]);
  dvr_device* device = dvr_find_device(argv[1]);
  dvr_program* program;
  if (!device) fail(argv[1]);
  if (dvr_program_load(argv[3], &program)) fail(argv[3]);
  uint32_t n_in, n_out;
  if (dvr_program_counts(program, &n_in, &n_out)) fail("counts");
  if ((uint32_t)argc != 4 + n_in + n_out)
    return fprintf(stderr, "%s: %" PRIu32 " inputs and %" PRIu32 " outputs\n", argv[3], n_in, n_out), 2;
  if (dvr_program_check(program, device, NULL, 0)) fail("check");
  dvr_tensor* arrays = calloc(n_in + n_out + 1, sizeof *arrays);
  dvr_tensor** in = calloc(n_in + 1, sizeof *in);
  if (!arrays || !in) return 1;
  for (uint32_t i = 0; i < n_in; ++i) {
    arrays[i] = read_array(device, argv[4 + i]);
    in[i] = &arrays[i];
    in[i]->view.shape = in[i]->dims, in[i]->view.strides = in[i]->dims + DVT_MAX_NDIM;
  }
  if (dvr_program_run(program, device, in, n_in, NULL, arrays + n_in, n_out)) fail("run");
  for (uint32_t i = 0; i < n_out; ++i) write_array(&arrays[n_in + i], argv[4 + n_in + i]);
  for (uint32_t i = 0; i < n_in + n_out; ++i) dvr_tensor_release(&arrays[i]);
  dvr_program_free(program);
  free(arrays);
  free(in);
  expect_no_python();
  puts("ok");
  return 0;
}
