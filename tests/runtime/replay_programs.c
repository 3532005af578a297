/* Replays saved programs on a device, without Python: replay_programs DEVICE LIBRARY < FOLDERS
 *
 * Each line of the input is a folder with program.dvt, operands.dvt and results.dvt. The last two are programs
 * without inputs, whose results are the first one's operands, and what it must give: the same dtypes, shapes and
 * bytes. A line of the output is "equal", or why not. */
#include <dovetail/runtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64 /* operands, results */

typedef struct {
  dvr_program* program;
  uint32_t n_in, n_out;
  dvr_tensor out[MOST];
} loaded;

static char why[1024];

static int failed(const char* step) {
  dvr_error_info error = {.struct_size = sizeof error};
  dvr_last_error(&error);
  snprintf(why, sizeof why, "%s: %s", step, error.kind ? error.message : "failed");
  for (char* c = why; *c; ++c)
    if (*c == '\n') *c = ' ';
  return 0;
}

static int load(loaded* p, const char* folder, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  memset(p, 0, sizeof *p);
  if (dvr_program_load(path, &p->program)) return failed(name);
  if (dvr_program_counts(p->program, &p->n_in, &p->n_out)) return failed(name);
  return p->n_in <= MOST && p->n_out <= MOST ? 1
                                             : failed("more operands or results than this program has room for");
}

static int run(loaded* p, dvr_device* device, loaded* operands, const char* name) {
  dvr_tensor* in[MOST];
  const uint32_t n = operands ? operands->n_out : 0;
  if (n != p->n_in) return snprintf(why, sizeof why, "%s: %" PRIu32 " operands for %" PRIu32, name, n, p->n_in), 0;
  for (uint32_t i = 0; i < n; ++i) in[i] = &operands->out[i];
  return dvr_program_run(p->program, device, in, n, NULL, p->out, p->n_out) ? failed(name) : 1;
}

/* The bytes of an array in row-major order; the caller frees them. */
static void* bytes_of(const dvr_tensor* t, size_t* size) {
  size_t n = 1;
  for (int i = 0; i < t->view.ndim; ++i) n *= (size_t)t->view.shape[i];
  *size = (n * t->view.dtype.bits * t->view.dtype.lanes + 7) / 8;
  void* data = calloc(*size + 1, 1);
  if (data && dvr_read(t, data)) free(data), data = NULL;
  return data;
}

static int is_equal(const dvr_tensor* a, const dvr_tensor* b, uint32_t i) {
  const size_t dims = sizeof(int64_t) * (size_t)a->view.ndim;
  if (memcmp(&a->view.dtype, &b->view.dtype, sizeof(DLDataType)) || a->view.ndim != b->view.ndim ||
      memcmp(a->view.shape, b->view.shape, dims))
    return snprintf(why, sizeof why, "result %" PRIu32 " has another dtype or shape", i), 0;
  size_t size, other;
  void *x = bytes_of(a, &size), *y = bytes_of(b, &other);
  if (!x || !y) return failed("read");
  size_t at = 0;
  while (at < size && !memcmp((char*)x + at, (char*)y + at, 1)) ++at;
  free(x);
  free(y);
  if (at < size) snprintf(why, sizeof why, "result %" PRIu32 " differs at byte %zu of %zu", i, at, size);
  return at == size;
}

static int replay(const char* folder, dvr_device* device, loaded p[3]) {
  if (!load(&p[0], folder, "operands.dvt") || !load(&p[1], folder, "program.dvt") ||
      !load(&p[2], folder, "results.dvt"))
    return 0;
  if (!run(&p[0], device, NULL, "operands") || !run(&p[1], device, &p[0], "program") ||
      !run(&p[2], device, NULL, "results"))
    return 0;
  if (p[1].n_out != p[2].n_out) return snprintf(why, sizeof why, "another number of results"), 0;
  for (uint32_t i = 0; i < p[1].n_out; ++i)
    if (!is_equal(&p[1].out[i], &p[2].out[i], i)) return 0;
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: %s DEVICE LIBRARY < FOLDERS\n", argv[0]), 2;
  dvr_device* device = dvr_load_backends((const char* const*)argv + 2, 1) ? NULL : dvr_find_device(argv[1]);
  if (!device) return failed(argv[1]), fprintf(stderr, "%s\n", why), 1;
  static loaded p[3];
  for (char folder[2048]; fgets(folder, sizeof folder, stdin);) {
    folder[strcspn(folder, "\n")] = 0;
    memset(p, 0, sizeof p);
    puts(replay(folder, device, p) ? "equal" : why);
    fflush(stdout);
    for (int k = 0; k < 3; ++k) {
      for (uint32_t i = 0; i < p[k].n_out && i < MOST; ++i) dvr_tensor_release(&p[k].out[i]);
      dvr_program_free(p[k].program);
    }
  }
  return 0;
}
